// The half of ParameterClient that sends, and sends again.
#include "worker/core/parameter_client.h"

#include <algorithm>
#include <utility>

namespace parley {

Header ParameterClient::header() {
  ++sequence_;
  return {options_.job, options_.generation, Role::worker, options_.rank, options_.incarnation, clock_, sequence_};
}

void ParameterClient::reconnected(ShardId shard, Out& out) {
  switch (links_[shard.value].wait) {
    case Link::Wait::nothing:
      break;
    case Link::Wait::versions:
    case Link::Wait::initialized:  // asking again finds out whether the values arrived
      send_ask(shard, out);
      break;
    case Link::Wait::finished:
      send_finished(shard, out);
      break;
  }
  const auto pulls = waiting_slices(shard, Wait::pull);
  const auto pushes = waiting_slices(shard, Wait::push);
  counters_.repeats += pulls.size() + pushes.size();
  send_pulls(shard, pulls, out);
  send_pushes(shard, pushes, out);
}

std::vector<SliceId> ParameterClient::waiting_slices(ShardId shard, Wait wait) const {
  std::vector<SliceId> waiting;
  for (const SliceId id : placement_.slices(shard))
    if (slots_[id.value].wait == wait) waiting.push_back(id);
  return waiting;
}

void ParameterClient::send_ask(ShardId shard, Out& out) {
  Outgoing message = compose(header(), wire::AskT());
  links_[shard.value].wait = Link::Wait::versions;
  links_[shard.value].newest = sequence_;
  out.send(shard, std::move(message));
}

// First values leave from half(0); they stay there until the answer has been taken, so no copy is needed. The lease is
// the gradient slice's: both halves of a life end with the same client.
void ParameterClient::send_initial(ShardId shard, Out& out) {
  wire::InitializeT body;
  std::vector<Frame> payload;
  for (const SliceId id : placement_.slices(shard)) {
    const auto values = std::as_bytes(parameters_.slice(id, Clock(0)));
    body.slices.emplace_back(id.value, values.size());
    payload.push_back(Frame::borrow(values, slots_[id.value].lease));
  }
  Outgoing message = compose(header(), std::move(body));
  message.payload = std::move(payload);
  links_[shard.value].wait = Link::Wait::initialized;
  links_[shard.value].newest = sequence_;
  out.send(shard, std::move(message));
}

void ParameterClient::send_finished(ShardId shard, Out& out) {
  Header from = header();
  from.clock = finish_clock_;
  wire::FinishedT body;
  body.group_stops = group_stops_;
  Outgoing message = compose(from, std::move(body));
  links_[shard.value].wait = Link::Wait::finished;
  links_[shard.value].newest = sequence_;
  out.send(shard, std::move(message));
}

void ParameterClient::send_pulls(ShardId shard, std::span<const SliceId> slices, Out& out) {
  if (slices.empty()) return;
  wire::PullT body;
  body.exact = exact_pull_;
  const Header from = header();
  for (const SliceId id : slices) {
    body.slices.emplace_back(id.value, clock_.value);
    slots_[id.value].newest = sequence_;
  }
  out.send(shard, compose(from, std::move(body)));
}

bool ParameterClient::has_gradient(SliceId id) const {
  return std::ranges::any_of(slots_[id.value].present, [](std::uint8_t byte) { return byte != 0; });
}

// Cuts the list into messages of at most message_bytes_max, so that a shard can begin before everything is there.
void ParameterClient::send_pushes(ShardId shard, std::span<const SliceId> slices, Out& out) {
  std::size_t begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::uint64_t more = has_gradient(slices[i]) ? layout_.slice(slices[i]).bytes() : 0;
    if (i > begin && bytes + more > options_.message_bytes_max) {
      send_push_message(shard, slices.subspan(begin, i - begin), out);
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  if (begin < slices.size()) send_push_message(shard, slices.subspan(begin), out);
}

void ParameterClient::send_push_message(ShardId shard, std::span<const SliceId> slices, Out& out) {
  wire::PushPullT body;
  std::vector<Frame> payload;
  body.samples = samples_;
  const Header from = header();
  for (const SliceId id : slices) {
    Slot& slot = slots_[id.value];
    slot.newest = sequence_;
    const bool any = has_gradient(id);
    const bool all = std::ranges::all_of(slot.present, [](std::uint8_t byte) { return byte != 0; });
    const auto presence = !any ? wire::Presence::none : all ? wire::Presence::all : wire::Presence::some;
    if (presence == wire::Presence::some)
      body.present.insert(body.present.end(), slot.present.begin(), slot.present.end());
    const auto values = std::as_bytes(gradients_.slice(id));
    body.slices.emplace_back(id.value, presence, slot.version.value, any ? values.size() : 0);
    payload.push_back(any ? Frame::borrow(values, slot.lease) : Frame());
    counters_.bytes_pushed += any ? values.size() : 0;
  }
  Outgoing message = compose(from, std::move(body));
  message.payload = std::move(payload);
  out.send(shard, std::move(message));
}

}  // namespace parley

#include "worker/core/parameter_client.h"

#include "common/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace parley {

ParameterClient::ParameterClient(const ClientOptions& options, const Layout& layout, const Placement& placement,
                                 ParameterArena parameters, GradientArena gradients)
    : options_(options),
      layout_(layout),
      placement_(placement),
      parameters_(parameters),
      gradients_(gradients),
      slots_(layout.slice_count()),
      links_(placement.shard_count()),
      by_shard_(placement.shard_count()) {}

void ParameterClient::start(Out& out) {
  phase_ = Phase::asking;
  for (std::uint32_t shard = 0; shard < links_.size(); ++shard) send_ask(ShardId(shard), out);
}

void ParameterClient::receive(ShardId from, Incoming message, Out& out) {
  const Header sender = message.header();
  if (const auto refusal = refuse(message, options_.job)) {
    fault_ = fmt::format("shard {}: {}", from, refusal->text);
    return;
  }
  if (sender.generation != options_.generation) return;
  switch (message.type()) {
    case wire::Body::Versions:
      return versions(from, message, out);
    case wire::Body::Weights:
      return weights(message);
    case wire::Body::Ack:
      return acknowledged(from, message, out);
    case wire::Body::Error: {
      const auto* text = message.body<wire::Error>()->text();
      fault_ = fmt::format("{} answers: {}", sender_name(sender), text == nullptr ? "" : text->c_str());
      return;
    }
    default:
      fault_ = fmt::format("{} sent an unexpected {}", sender_name(sender), wire::EnumNameBody(message.type()));
  }
}

void ParameterClient::versions(ShardId from, const Incoming& message, Out& out) {
  Link& link = links_[from.value];
  const auto* body = message.body<wire::Versions>();
  if (link.wait != Link::Wait::versions || body->answers() != link.newest.value) return;
  if (!body->ready()) return send_initial(from, out);
  link.wait = Link::Wait::nothing;
  link.reported = true;
  for (std::uint32_t i = 0; body->slices() != nullptr && i < body->slices()->size(); ++i)
    link.resume = std::min(link.resume, Clock(body->slices()->Get(i)->next_clock()));
  if (phase_ != Phase::asking || !std::ranges::all_of(links_, &Link::reported)) return;
  clock_ = std::ranges::min(links_, {}, &Link::resume).resume;
  if (layout_.slice_count() == 0) clock_ = Clock(0);
  pull_all(options_.gathers, out);
}

void ParameterClient::pull_all(bool exact, Out& out) {
  phase_ = Phase::pulling;
  exact_pull_ = exact;
  unanswered_ = slots_.size();
  for (Slot& slot : slots_) slot.wait = Wait::pull;
  for (std::uint32_t shard = 0; shard < links_.size(); ++shard)
    send_pulls(ShardId(shard), placement_.slices(ShardId(shard)), out);
  settle();
}

void ParameterClient::begin(Clock clock, std::uint64_t samples) {
  PARLEY_CHECK(phase_ == Phase::complete && clock == clock_, "clock {} begins at {}", clock, clock_);
  phase_ = Phase::pushing;
  samples_ = samples;
  waited_us_ = 0;
  unanswered_ = slots_.size();
  settle();
}

void ParameterClient::push(std::span<const Ready> slices, Out& out) {
  if (phase_ != Phase::pushing) return;  // the group stopped meanwhile
  for (auto& list : by_shard_) list.clear();
  for (const Ready& ready : slices) {
    Slot& slot = slots_[ready.slice.value];
    PARLEY_CHECK(slot.wait == Wait::nothing, "slice {} is pushed twice at clock {}", ready.slice, clock_);
    slot.wait = Wait::push;
    slot.present.assign(ready.present.begin(), ready.present.end());
    by_shard_[placement_.owner(ready.slice).value].push_back(ready.slice);
  }
  for (std::uint32_t shard = 0; shard < by_shard_.size(); ++shard) send_pushes(ShardId(shard), by_shard_[shard], out);
}

void ParameterClient::weights(const Incoming& message) {
  const auto* entries = message.body<wire::Weights>()->slices();
  const std::size_t count = entries == nullptr ? 0 : entries->size();
  if (count != message.payload().size()) {
    fault_ = fmt::format("{} sent weights of {} slices in {} frames", sender_name(message.header()), count,
                         message.payload().size());
    return;
  }
  for (std::uint32_t i = 0; i < count && !fault_; ++i) take(*entries->Get(i), message.payload()[i]);
}

void ParameterClient::take(const wire::SliceWeights& entry, const Frame& frame) {
  if (entry.slice() >= slots_.size()) {
    fault_ = fmt::format("weights of an unknown slice {}", entry.slice());
    return;
  }
  const SliceId id(entry.slice());
  Slot& slot = slots_[id.value];
  if (slot.wait == Wait::nothing || entry.answers() != slot.newest.value) {
    ++counters_.ignored;
    return;
  }
  const bool pushed = slot.wait == Wait::push;
  const Clock target = pushed ? clock_.next() : clock_;
  const std::span<float> values = parameters_.slice(id, target);
  const bool exact = options_.gathers && (pushed || exact_pull_);
  if (frame.size() != values.size_bytes() || (exact && entry.version() != target.value)) {
    fault_ = fmt::format("slice {}: version {} with {} bytes came, {} with {} were expected", id, entry.version(),
                         frame.size(), target, values.size_bytes());
    return;
  }
  std::memcpy(values.data(), frame.bytes().data(), frame.size());
  slot.wait = Wait::nothing;
  slot.version = Version(entry.version());
  counters_.bytes_pulled += frame.size();
  if (pushed) {
    ++counters_.answers;
    counters_.lead_sum += entry.lead();
    counters_.lead_max = std::max(counters_.lead_max, entry.lead());
    counters_.lag_sum += entry.lag();
    counters_.lag_max = std::max(counters_.lag_max, entry.lag());
    waited_us_ = std::max(waited_us_, entry.waited_us());
  }
  --unanswered_;
  settle();
}

// Moves on where nothing is unanswered any more.
void ParameterClient::settle() {
  if (unanswered_ > 0) return;
  if (phase_ == Phase::pushing) ++clock_;
  if (phase_ == Phase::pushing || phase_ == Phase::pulling) phase_ = Phase::complete;
}

void ParameterClient::stop() {
  PARLEY_CHECK(phase_ == Phase::pushing || phase_ == Phase::complete, "stop at clock {}", clock_);
  for (Slot& slot : slots_) slot.wait = Wait::nothing;
  unanswered_ = 0;
  phase_ = Phase::stopped;
}

void ParameterClient::finish(Clock clock, bool group_stops, Out& out) {
  PARLEY_CHECK((phase_ == Phase::complete || phase_ == Phase::stopped) && clock == clock_, "finish {} at {}", clock,
               clock_);
  phase_ = Phase::finishing;
  finish_clock_ = clock;
  group_stops_ = group_stops;
  for (std::uint32_t shard = 0; shard < links_.size(); ++shard) send_finished(ShardId(shard), out);
}

void ParameterClient::acknowledged(ShardId from, const Incoming& message, Out& out) {
  Link& link = links_[from.value];
  if (message.body<wire::Ack>()->answers() != link.newest.value) return;
  if (link.wait == Link::Wait::initialized) return send_ask(from, out);
  if (link.wait != Link::Wait::finished) return;
  link.wait = Link::Wait::nothing;
  const bool all = std::ranges::all_of(links_, [](const Link& other) { return other.wait == Link::Wait::nothing; });
  if (phase_ == Phase::finishing && all) phase_ = Phase::finished;
}

void ParameterClient::pull_final(Out& out) {
  PARLEY_CHECK(phase_ == Phase::finished, "final weights are pulled after all have finished");
  pull_all(false, out);
}

bool ParameterClient::gradients_idle() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.lease.idle(); });
}

std::string ParameterClient::waiting_for() const {
  std::string text;
  for (std::uint32_t shard = 0; shard < links_.size(); ++shard) {
    const Link& link = links_[shard];
    const std::size_t slices =
        waiting_slices(ShardId(shard), Wait::pull).size() + waiting_slices(ShardId(shard), Wait::push).size();
    if (link.wait == Link::Wait::nothing && slices == 0) continue;
    const char* what = link.wait == Link::Wait::versions      ? "its versions"
                       : link.wait == Link::Wait::initialized ? "its first values' acknowledgement"
                       : link.wait == Link::Wait::finished    ? "the acknowledgement that this worker has finished"
                                                              : nullptr;
    text += fmt::format("{}shard {}: ", text.empty() ? "" : "; ", shard);
    text += what != nullptr ? std::string(what) : fmt::format("{} slices of clock {}", slices, clock_);
  }
  return text;
}

}  // namespace parley

#include "server/core/shard.h"

#include "common/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

namespace parley {
namespace {

// ZeroMQ hands out small messages at any address inside its receive buffer; the kernels read floats.
Frame float_aligned(Frame frame) {
  if (std::bit_cast<std::uintptr_t>(frame.bytes().data()) % alignof(float) == 0) return frame;
  return Frame::copy(frame.bytes());
}

std::span<const float> as_floats(const Frame& frame) {
  return {reinterpret_cast<const float*>(frame.bytes().data()), frame.size() / sizeof(float)};
}

}  // namespace

Shard::Shard(const ShardOptions& options, const StoreOptions& store_options, const Layout& layout,
             const Placement& placement)
    : options_(options),
      layout_(layout),
      slice_ids_(placement.slices(options.id).begin(), placement.slices(options.id).end()),
      group_(options.workers),
      store_(store_options, layout, slice_ids_),
      verdicts_(0, 0),
      slice_index_(layout.slice_count(), -1),
      uninitialized_(slice_ids_.size()) {
  for (const SliceId id : slice_ids_) {
    slice_index_[id.value] = static_cast<std::int64_t>(slices_.size());
    slices_.emplace_back(id, options.workers);
  }
  std::uint32_t judging = 0;
  for (std::uint32_t shard = 0; shard < placement.shard_count(); ++shard) {
    if (placement.slices(ShardId(shard)).empty()) continue;
    ++judging;
    if (ShardId(shard) != options.id) verdict_peers_.push_back(ShardId(shard));
  }
  verdicts_ = VerdictRound(judging, options.clip_norm);
}

void Shard::receive(Route route, Incoming message, Instant now, ShardOutbox& out) {
  if (!admit(route, message, out)) return;
  switch (message.type()) {
    case wire::Body::Initialize:
      initialize(route, message, out);
      break;
    case wire::Body::Ask:
      ask(route, message, out);
      break;
    case wire::Body::PushPull:
      push_pull(route, message, now, out);
      break;
    case wire::Body::Pull:
      pull(route, message, now, out);
      break;
    case wire::Body::Finished:
      finished(route, message, now, out);
      break;
    case wire::Body::Verdict:
      verdict(message, now, out);
      break;
    default:
      malformed(message.header(), fmt::format("unexpected {}", wire::EnumNameBody(message.type())));
  }
  replies_.flush(header(), out.replies);
}

// Who may speak: this protocol, job and generation; the living incarnation of a rank of the group.
bool Shard::admit(Route route, const Incoming& message, ShardOutbox& out) {
  if (const auto refusal = refuse(message, options_.job)) {
    out.replies.send(route, compose_error(header(), refusal->fault, refusal->text));
    return false;
  }
  const Header from = message.header();
  if (from.generation != options_.generation) {
    ++counters_.late;
    return false;
  }
  if (message.type() == wire::Body::Verdict) return from.role == Role::server;
  if (from.role != Role::worker || !group_.contains(from.rank)) {
    malformed(from, "not a worker of this job");
    return false;
  }
  if (from.incarnation < group_.incarnation(from.rank)) {
    out.replies.send(route, compose_error(header(), wire::Fault::ended,
                                          fmt::format("worker {} lives on in incarnation {}, this is {}", from.rank,
                                                      group_.incarnation(from.rank), from.incarnation)));
    return false;
  }
  learn_incarnation(from.rank, from.incarnation);
  return true;
}

void Shard::learn_incarnation(Rank worker, Incarnation incarnation) {
  if (!group_.contains(worker) || incarnation <= group_.incarnation(worker)) return;
  group_.set_incarnation(worker, incarnation);
  held_asks_.erase(worker);
  for (SliceState& slice : slices_) {
    slice.newest[worker.value] = Sequence();
    slice.pending[worker.value].reset();
    slice.asks[worker.value].reset();
  }
}

void Shard::initialize(Route route, const Incoming& message, ShardOutbox& out) {
  const Header from = message.header();
  const auto* entries = message.body<wire::Initialize>()->slices();
  const std::size_t count = entries == nullptr ? 0 : entries->size();
  if (count != message.payload().size()) return malformed(from, "Initialize: a frame a slice expected");
  for (std::uint32_t i = 0; i < count; ++i) {
    const SliceState* slice = find(entries->Get(i)->slice());
    if (slice == nullptr || message.payload()[i].size() != layout_.slice(slice->id).bytes())
      return malformed(from, "Initialize: a slice of another shard or size");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const SliceId id(entries->Get(i)->slice());
    if (store_.initialized(id)) continue;  // a repeat
    const Frame values = float_aligned(Frame::copy(message.payload()[i].bytes()));
    store_.initialize(id, as_floats(values));
    --uninitialized_;
  }
  acknowledge(route, from.sequence, out);
  if (ready()) answer_held(out);
}

void Shard::ask(Route route, const Incoming& message, ShardOutbox& out) {
  const Header from = message.header();
  HeldAsk& held = held_asks_[from.rank];
  if (from.sequence < held.sequence) {
    ++counters_.late;
    return;
  }
  held = {route, from.sequence};
  if (ready()) return answer_held(out);
  if (from.rank != Rank(0)) return;
  wire::VersionsT body;
  body.answers = from.sequence.value;
  out.replies.send(route, compose(header(), std::move(body)));
}

void Shard::answer_held(ShardOutbox& out) {
  for (const auto& [rank, held] : held_asks_) {
    wire::VersionsT body;
    body.ready = true;
    body.answers = held.sequence.value;
    for (const SliceState& slice : slices_) {
      const Version version = store_.version(slice.id);
      const Clock next = options_.sync.gathers() ? Clock(version.value) : slice.clocks.pushed(rank);
      body.slices.emplace_back(slice.id.value, version.value, next.value);
    }
    out.replies.send(held.route, compose(header(), std::move(body)));
  }
  held_asks_.clear();
}

void Shard::push_pull(Route route, Incoming& message, Instant now, ShardOutbox& out) {
  const Header from = message.header();
  const auto* body = message.body<wire::PushPull>();
  const std::size_t count = body->slices() == nullptr ? 0 : body->slices()->size();
  if (!ready() || count != message.payload().size())
    return malformed(from, "PushPull: a frame a slice expected, after Initialize");
  std::size_t present_at = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const wire::SlicePush& entry = *body->slices()->Get(i);
    SliceState* slice = find(entry.slice());
    if (slice == nullptr) return malformed(from, fmt::format("PushPull: slice {} is not ours", entry.slice()));
    const Slice& where = layout_.slice(slice->id);
    PendingPush push;
    push.samples = body->samples();
    push.ask = {route, from.sequence, from.clock, now, 0};
    if (entry.presence() == wire::Presence::all) {
      push.present.assign(where.parts.size(), 1);
    } else if (entry.presence() == wire::Presence::some) {
      if (body->present() == nullptr || body->present()->size() - present_at < where.parts.size())
        return malformed(from, "PushPull: presence bytes are missing");
      const std::uint8_t* first = body->present()->data() + present_at;
      push.present.assign(first, first + where.parts.size());
      present_at += where.parts.size();
    }
    const std::uint64_t expected = push.present.empty() ? 0 : where.bytes();
    if (message.payload()[i].size() != expected)
      return malformed(from, fmt::format("PushPull: slice {} has {} bytes, {} expected", entry.slice(),
                                         message.payload()[i].size(), expected));
    if (from.sequence < slice->newest[from.rank.value]) {
      ++counters_.late;
      continue;
    }
    if (from.clock > slice->clocks.pushed(from.rank))
      return malformed(from, fmt::format("PushPull: clock {} of slice {}, {} expected", from.clock, entry.slice(),
                                         slice->clocks.pushed(from.rank)));
    slice->newest[from.rank.value] = from.sequence;
    counters_.bytes_received += message.payload()[i].size();
    push.gradient = float_aligned(std::move(message.payload()[i]));
    const std::uint64_t version = store_.version(slice->id).value;
    push.ask.lag = version - std::min(version, entry.base_version());
    take_push(*slice, from.rank, std::move(push), now, out);
  }
}

void Shard::take_push(SliceState& slice, Rank rank, PendingPush push, Instant now, ShardOutbox& out) {
  if (failed_) return;
  if (push.ask.clock < slice.clocks.pushed(rank)) {  // applied before: answered under the mode's rule
    ++counters_.repeats;
    push.ask.lag = 0;
    slice.asks[rank.value] = push.ask;
  } else if (options_.sync.gathers()) {
    ++(slice.pending[rank.value] ? counters_.repeats : counters_.pushes);
    slice.pending[rank.value] = std::move(push);
    return apply_complete(slice, now, out);
  } else {
    ++counters_.pushes;
    apply_single(slice, rank, std::move(push), out);
  }
  release_asks(slice, now);
}

void Shard::pull(Route route, const Incoming& message, Instant now, ShardOutbox&) {
  const Header from = message.header();
  const auto* body = message.body<wire::Pull>();
  const std::size_t count = body->slices() == nullptr ? 0 : body->slices()->size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const wire::SlicePull& entry = *body->slices()->Get(i);
    SliceState* slice = find(entry.slice());
    if (slice == nullptr || !store_.initialized(slice->id))
      return malformed(from, fmt::format("Pull: slice {} is not ours or has no values", entry.slice()));
    if (from.sequence < slice->newest[from.rank.value]) {
      ++counters_.late;
      continue;
    }
    slice->newest[from.rank.value] = from.sequence;
    const Version version = body->exact() ? Version(entry.version()) : store_.version(slice->id);
    answer(*slice, {route, from.sequence, from.clock, now, 0}, version, 0, now);
  }
}

void Shard::finished(Route route, const Incoming& message, Instant now, ShardOutbox& out) {
  const Header from = message.header();
  group_.finish(from.rank, from.clock);
  // Who leaves because the group stops must not complete the clock for those who have pushed it.
  if (message.body<wire::Finished>()->group_stops()) group_.stop_at(from.clock);
  for (SliceState& slice : slices_) {
    slice.asks[from.rank.value].reset();
    auto& pending = slice.pending[from.rank.value];
    if (pending && pending->ask.clock >= from.clock) pending.reset();
  }
  acknowledge(route, from.sequence, out);
  for (SliceState& slice : slices_) {
    apply_complete(slice, now, out);
    release_asks(slice, now);
  }
}

// Answers that the sync policy lets go now.
void Shard::release_asks(SliceState& slice, Instant now) {
  const Clock slowest = slice.clocks.slowest(group_);
  for (auto& ask : slice.asks) {
    if (!ask || !options_.sync.may_answer(ask->clock, slowest)) continue;
    answer(slice, *ask, store_.version(slice.id), SyncPolicy::lead(ask->clock, slowest), now);
    ask.reset();
  }
}

void Shard::answer(const SliceState& slice, const Ask& ask, Version version, std::uint64_t lead, Instant now) {
  auto weights = store_.lend(slice.id, version);
  if (!weights) {
    malformed(header(), fmt::format("version {} of slice {} is asked for, {} is the newest", version, slice.id,
                                    store_.version(slice.id)));
    return;
  }
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - ask.arrived).count();
  counters_.bytes_sent += weights->size();
  const wire::SliceWeights entry(slice.id.value, ask.sequence.value, version.value, lead, ask.lag,
                                 static_cast<std::uint64_t>(std::max<std::int64_t>(waited, 0)), weights->size());
  replies_.add(ask.route, entry, std::move(*weights));
}

void Shard::acknowledge(Route route, Sequence sequence, ShardOutbox& out) {
  wire::AckT body;
  body.answers = sequence.value;
  out.replies.send(route, compose(header(), std::move(body)));
}

Shard::SliceState* Shard::find(std::uint32_t slice) {
  if (slice >= slice_index_.size() || slice_index_[slice] < 0) return nullptr;
  return &slices_[static_cast<std::size_t>(slice_index_[slice])];
}

void Shard::malformed(const Header& from, const std::string& what) {
  ++counters_.malformed;
  last_malformed_ = fmt::format("{}: {}", sender_name(from), what);
}

Header Shard::header(Clock clock) {
  ++sequence_;
  return {options_.job, options_.generation, Role::server, options_.server, options_.incarnation, clock, sequence_};
}

}  // namespace parley

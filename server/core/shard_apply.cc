// The half of Shard that turns pushes into versions: one-phase and two-phase clocks.
#include "server/core/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace parley {
namespace {

std::span<const float> values_of(const PendingPush& push) {
  return {reinterpret_cast<const float*>(push.gradient.bytes().data()), push.gradient.size() / sizeof(float)};
}

}  // namespace

// ssp, asp: on arrival, with the learning rate of the pusher's clock divided by the number of workers.
void Shard::apply_single(SliceState& slice, Rank rank, PendingPush push, ShardOutbox& out) {
  contributions_.assign(1, {rank, push.samples, push.present, values_of(push)});
  if (const auto fault = store_.gather(slice.id, contributions_)) return fail(push.ask.clock, *fault, out);
  store_.apply(slice.id, push.ask.clock, 1.0 / group_.size(), 1.0F);
  ++counters_.updates;
  slice.clocks.advance(rank);
  slice.asks[rank.value] = push.ask;
}

// bsp: every member's push of the slice's next clock is here.
bool Shard::complete(const SliceState& slice) const {
  const Clock clock(store_.version(slice.id).value);
  if (clock >= group_.stop()) return false;
  bool any = false;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (!group_.pushes(Rank(rank), clock)) continue;
    if (!slice.pending[rank]) return false;
    any = true;
  }
  return any;
}

void Shard::apply_complete(SliceState& slice, Instant now, ShardOutbox& out) {
  if (failed_ || !complete(slice)) return;
  if (!two_phase()) {
    if (const auto fault = gather(slice)) return fail(Clock(store_.version(slice.id).value), *fault, out);
    publish(slice, {});
    return release_asks(slice, now);
  }
  apply_decided(Clock(store_.version(slice.id).value), now, out);
}

// Two-phase: applies all own slices of `clock` once every shard's verdict is known; judges first where that is owed.
void Shard::apply_decided(Clock clock, Instant now, ShardOutbox& out) {
  if (!verdicts_.has(clock, options_.id) && !judge(clock, out)) return;
  const auto decision = verdicts_.decide(clock);
  if (!decision || (decision->skip && !options_.skip_non_finite)) return;
  for (SliceState& slice : slices_) {
    if (Clock(store_.version(slice.id).value) != clock || !complete(slice)) continue;
    if (!decision->skip) (void)gather(slice);
    publish(slice, *decision);
    release_asks(slice, now);
  }
}

// Judges this shard's part of the clock and tells the other shards; false where a slice is not complete yet.
bool Shard::judge(Clock clock, ShardOutbox& out) {
  for (const SliceState& slice : slices_)
    if (Clock(store_.version(slice.id).value) != clock || !complete(slice)) return false;
  ShardVerdict verdict;
  for (const SliceState& slice : slices_) {
    const auto fault = gather(slice);
    if (fault && !options_.skip_non_finite) {
      fail(clock, *fault, out);
      return false;
    }
    if (fault) verdict.finite = false;
    verdict.slices.push_back({slice.id, fault ? 0.0 : store_.sum_of_squares(slice.id)});
  }
  verdicts_.add(clock, options_.id, std::move(verdict));
  for (const ShardId peer : verdict_peers_) send_verdict(clock, peer, out);
  return true;
}

void Shard::send_verdict(Clock clock, ShardId to, ShardOutbox& out) {
  const ShardVerdict& verdict = verdicts_.verdict(clock, options_.id);
  wire::VerdictT body;
  body.shard = options_.id.value;
  body.finite = verdict.finite;
  for (const SliceVerdict& slice : verdict.slices) body.slices.emplace_back(slice.slice.value, slice.sum_of_squares);
  out.verdicts.send(to, compose(header(clock), std::move(body)));
}

void Shard::peer_connected(ShardId peer, ShardOutbox& out) {
  for (const Clock clock : verdicts_.clocks())
    if (verdicts_.has(clock, options_.id)) send_verdict(clock, peer, out);
}

void Shard::verdict(const Incoming& message, Instant now, ShardOutbox& out) {
  const auto* body = message.body<wire::Verdict>();
  const Clock clock = message.header().clock;
  if (!two_phase() || std::ranges::find(verdict_peers_, ShardId(body->shard())) == verdict_peers_.end())
    return malformed(message.header(), "Verdict: none is expected from there");
  ShardVerdict verdict;
  verdict.finite = body->finite();
  for (std::uint32_t i = 0; body->slices() != nullptr && i < body->slices()->size(); ++i)
    verdict.slices.push_back({SliceId(body->slices()->Get(i)->slice()), body->slices()->Get(i)->sum_of_squares()});
  verdicts_.add(clock, ShardId(body->shard()), std::move(verdict));
  if (!failed_ && verdicts_.has(clock, options_.id)) apply_decided(clock, now, out);
}

// The mean of a complete clock, in rank order, into the store's scratch.
std::optional<std::string> Shard::gather(const SliceState& slice) {
  contributions_.clear();
  const Clock clock(store_.version(slice.id).value);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (!group_.pushes(Rank(rank), clock)) continue;
    const PendingPush& push = *slice.pending[rank];
    contributions_.push_back({Rank(rank), push.samples, push.present, values_of(push)});
  }
  return store_.gather(slice.id, contributions_);
}

// The gathered clock becomes the next version; its pushes now wait for their answers.
void Shard::publish(SliceState& slice, ClockDecision decision) {
  const Clock clock(store_.version(slice.id).value);
  if (decision.skip) {
    store_.skip(slice.id);
    ++counters_.skipped;
  } else {
    store_.apply(slice.id, clock, 1.0, decision.gradient_scale);
    ++counters_.updates;
  }
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (!group_.pushes(Rank(rank), clock)) continue;
    slice.asks[rank] = slice.pending[rank]->ask;
    slice.pending[rank].reset();
    slice.clocks.advance(Rank(rank));
  }
  if (!two_phase()) return;
  Version oldest = store_.version(slice.id);
  for (const SliceState& other : slices_) oldest = std::min(oldest, store_.version(other.id));
  if (oldest.value > 1) verdicts_.forget_before(Clock(oldest.value - 1));
}

void Shard::fail(Clock clock, const std::string& why, ShardOutbox& out) {
  failed_ = true;
  out.fault = fmt::format("clock {}: {}", clock, why);
}

}  // namespace parley

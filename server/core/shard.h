// The state machine of one shard: a message goes in together with the time, messages come out. It owns its slices
// alone; no socket, thread, lock, clock or file. One thread (server/shard_loop.h) or the simulator drives it.
//
// Invariants (docs/design.md, 'Protocol rules')
//  1. A push of (rank, clock) changes a slice at most once, whatever is repeated, reordered or sent by a dead
//     incarnation.
//  2. In bsp version t + 1 of a slice is the mean of all members' pushes of clock t in rank order, one optimizer step
//     on version t; the result depends on neither arrival order nor the number of shards.
//  3. An answer to a push of clock c leaves when the sync policy allows it (sync_policy.h), carries the pusher's own
//     update, and goes to the connection of the newest message for that slice.
//  4. Of two messages of one incarnation for one slice the higher sequence counts; a late lower one is dropped.
//  5. A higher incarnation of a worker voids its pushes not yet applied; a lower one is answered Error(ended).
//  6. Nothing is applied before it was found finite; with verdicts, before all shards agreed on the clock.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/layout/layout.h"
#include "common/layout/placement.h"
#include "common/wire/message.h"
#include "common/wire/outbox.h"
#include "server/core/clock_table.h"
#include "server/core/dense_store.h"
#include "server/core/pending_push.h"
#include "server/core/reply_batch.h"
#include "server/core/sync_policy.h"
#include "server/core/verdict_round.h"
#include "server/core/worker_group.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

struct ShardOptions {
  ShardId id;
  JobId job;
  Generation generation;
  Rank server;
  Incarnation incarnation;
  std::uint32_t workers = 1;
  SyncPolicy sync;
  // Decisions over the whole gradient; either makes a bsp clock two-phase (rule 10).
  double clip_norm = 0;          // 0: none
  bool skip_non_finite = false;  // false: a non-finite gradient stops the job
};

// Counts since the start; the loop publishes them.
struct ShardCounters {
  std::uint64_t pushes = 0;          // slices pushed, repeats not counted
  std::uint64_t repeats = 0;         // pushes of a clock that was there already
  std::uint64_t late = 0;            // messages dropped: a newer one was taken, or an old generation
  std::uint64_t malformed = 0;       // messages that cannot be
  std::uint64_t updates = 0;         // optimizer steps on a slice
  std::uint64_t skipped = 0;         // clocks of a slice dropped by a verdict
  std::uint64_t bytes_received = 0;  // gradient payload
  std::uint64_t bytes_sent = 0;      // weight payload
};

struct ShardOutbox {
  Outbox<Route> replies;     // to workers
  Outbox<ShardId> verdicts;  // to other shards
  // Why the job has to stop (a non-finite gradient), once.
  std::optional<std::string> fault;
};

class Shard {
 public:
  // `layout` and `placement` must outlive the shard. store_options.groups follow the layout's parameter groups.
  Shard(const ShardOptions& options, const StoreOptions& store_options, const Layout& layout,
        const Placement& placement);

  // A message that came on `route`. Never throws for what a peer sent.
  void receive(Route route, Incoming message, Instant now, ShardOutbox& out);
  // This worker's living incarnation is at least this one (from the coordinator).
  void learn_incarnation(Rank worker, Incarnation incarnation);
  // The connection to another shard is new: it hears our verdicts again.
  void peer_connected(ShardId peer, ShardOutbox& out);

  // Every slice has its first values.
  bool ready() const { return uninitialized_ == 0; }
  const DenseStore& store() const { return store_; }
  const ShardCounters& counters() const { return counters_; }
  // What the last malformed message was, for a rate-limited log line; see counters().malformed.
  const std::string& last_malformed() const { return last_malformed_; }
  std::span<const SliceId> slices() const { return slice_ids_; }

 private:
  struct SliceState {
    SliceState(SliceId slice, std::uint32_t workers)
        : id(slice), clocks(workers), newest(workers), pending(workers), asks(workers) {}
    SliceId id;
    ClockTable clocks;
    std::vector<Sequence> newest;                     // a rank: highest sequence of its living incarnation
    std::vector<std::optional<PendingPush>> pending;  // a rank: bsp, not yet applied
    std::vector<std::optional<Ask>> asks;             // a rank: applied, not yet answered
  };

  bool admit(Route route, const Incoming& message, ShardOutbox& out);
  void initialize(Route route, const Incoming& message, ShardOutbox& out);
  void ask(Route route, const Incoming& message, ShardOutbox& out);
  void push_pull(Route route, Incoming& message, Instant now, ShardOutbox& out);
  void pull(Route route, const Incoming& message, Instant now, ShardOutbox& out);
  void finished(Route route, const Incoming& message, Instant now, ShardOutbox& out);
  void verdict(const Incoming& message, Instant now, ShardOutbox& out);

  void take_push(SliceState& slice, Rank rank, PendingPush push, Instant now, ShardOutbox& out);
  void apply_single(SliceState& slice, Rank rank, PendingPush push, ShardOutbox& out);
  bool complete(const SliceState& slice) const;
  void apply_complete(SliceState& slice, Instant now, ShardOutbox& out);
  void apply_decided(Clock clock, Instant now, ShardOutbox& out);
  bool judge(Clock clock, ShardOutbox& out);
  void send_verdict(Clock clock, ShardId to, ShardOutbox& out);
  std::optional<std::string> gather(const SliceState& slice);
  void publish(SliceState& slice, ClockDecision decision);
  void release_asks(SliceState& slice, Instant now);
  void answer(const SliceState& slice, const Ask& ask, Version version, std::uint64_t lead, Instant now);
  void answer_held(ShardOutbox& out);
  void fail(Clock clock, const std::string& why, ShardOutbox& out);
  void void_incarnation(Rank rank);
  SliceState* find(std::uint32_t slice);
  void malformed(const Header& from, const std::string& what);
  Header header(Clock clock = Clock());
  void acknowledge(Route route, Sequence sequence, ShardOutbox& out);
  bool two_phase() const { return options_.sync.gathers() && (options_.clip_norm > 0 || options_.skip_non_finite); }

  // Constant after construction.
  const ShardOptions options_;
  const Layout& layout_;
  const std::vector<SliceId> slice_ids_;
  std::vector<ShardId> verdict_peers_;  // the other shards that own slices

  // Owned by the shard's thread.
  WorkerGroup group_;
  DenseStore store_;
  VerdictRound verdicts_;
  std::vector<SliceState> slices_;
  std::vector<std::int64_t> slice_index_;  // SliceId -> index into slices_, -1: not ours
  std::uint64_t uninitialized_;
  struct HeldAsk {
    Route route;
    Sequence sequence;
  };
  std::map<Rank, HeldAsk> held_asks_;  // until every slice has its first values
  Sequence sequence_;
  bool failed_ = false;
  ReplyBatch replies_;
  ShardCounters counters_;
  std::string last_malformed_;
  std::vector<Contribution> contributions_;  // scratch
};

}  // namespace parley

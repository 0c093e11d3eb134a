// The worker's side of the protocol as a state machine: it learns where to resume, pulls, pushes slices as they become
// ready, takes the answers into the parameter arena and repeats what a broken connection may have swallowed. No socket,
// thread, lock, clock or file; one thread (worker/comms_loop.h) or the simulator drives it.
//
// Life: start() -> [asks every shard; rank 0 gives first values to those that have none; pulls]
//       -> complete() at clock c
//       -> { begin(c, samples), push(...) until every slice is pushed -> complete() at c + 1 }
//       -> finish(c) -> finished() -> pull_final() -> complete().
//
// Invariants (docs/design.md, 'Protocol rules')
//  1. No push of clock t + 1 leaves before every slice's weights of t + 1 are here (bsp: exactly version t + 1).
//  2. It resumes at the smallest applied version over all slices.
//  3. Only the answer to the newest send for a slice is taken; it is written into half(t + 1) of the parameter arena,
//     never into the half that clock t computes on.
//  4. A gradient slice may be rewritten only when it is answered and no frame over it is out: gradients_idle().
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/layout/placement.h"
#include "common/wire/message.h"
#include "common/wire/outbox.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

struct ClientOptions {
  JobId job;
  Generation generation;
  Rank rank;
  Incarnation incarnation;
  bool gathers = true;  // bsp: versions are clocks, and are checked
  // Slices that are ready together for one shard share a message up to this payload.
  std::uint64_t message_bytes_max = std::uint64_t{4} << 20;
};

// Sums over all answers to pushes since the start.
struct ClientCounters {
  std::uint64_t answers = 0;       // slices answered
  std::uint64_t repeats = 0;       // slices sent again
  std::uint64_t ignored = 0;       // answers to older sends
  std::uint64_t bytes_pushed = 0;  // payload
  std::uint64_t bytes_pulled = 0;
  std::uint64_t lead_sum = 0;  // clocks ahead of the slowest member
  std::uint64_t lead_max = 0;
  std::uint64_t lag_sum = 0;  // updates that a gradient did not know of
  std::uint64_t lag_max = 0;
};

class ParameterClient {
 public:
  using Out = Outbox<ShardId>;

  // Layout, placement and the arenas' memory must outlive the client and every frame it sent.
  ParameterClient(const ClientOptions& options, const Layout& layout, const Placement& placement,
                  ParameterArena parameters, GradientArena gradients);

  // First values, should a shard ask for them, are read from half(0) of the parameter arena.
  void start(Out& out);
  void receive(ShardId from, Incoming message, Out& out);
  // The connection to this shard is new: what is unanswered there is sent again.
  void reconnected(ShardId shard, Out& out);

  // A step on clock() begins; complete() must hold.
  void begin(Clock clock, std::uint64_t samples);
  struct Ready {
    SliceId slice;
    std::span<const std::uint8_t> present;  // a byte a part of the slice; copied
  };
  // These slices' gradients are complete in the gradient arena. Once a slice a step.
  void push(std::span<const Ready> slices, Out& out);

  // The group stops at clock(): what is unanswered is given up. Only finish() may follow.
  void stop();
  // No more pushes from `clock` on: tells every shard. finished() once all have acknowledged. group_stops: the whole
  // group does, at this clock; no shard applies it then.
  void finish(Clock clock, bool group_stops, Out& out);
  bool finished() const { return phase_ == Phase::finished; }
  // The newest weights into half(clock()); complete() when they are here.
  void pull_final(Out& out);

  // The weights of clock() are complete in its half.
  bool complete() const { return phase_ == Phase::complete; }
  Clock clock() const { return clock_; }
  // No frame over the gradient arena is out.
  bool gradients_idle() const;
  // The longest time, in microseconds, that an answer of the current clock waited for other workers.
  std::uint64_t waited_us() const { return waited_us_; }
  // Why this worker cannot go on, in one line.
  const std::optional<std::string>& fault() const { return fault_; }
  const ClientCounters& counters() const { return counters_; }
  // "shard 1: 3 slices of clock 7": what the client is waiting for, for a log line.
  std::string waiting_for() const;

 private:
  enum class Phase { idle, asking, pulling, complete, pushing, stopped, finishing, finished };
  enum class Wait { nothing, pull, push };
  struct Slot {
    Wait wait = Wait::nothing;
    Sequence newest;  // of the send that is waited for
    Version version;  // held
    std::vector<std::uint8_t> present;
    Lease lease;  // frames over the gradient slice
  };
  struct Link {
    enum class Wait { nothing, versions, initialized, finished } wait = Wait::nothing;
    Sequence newest;
    bool reported = false;  // its Versions are in
    Clock resume{~std::uint64_t{0}};
  };

  void versions(ShardId from, const Incoming& message, Out& out);
  void weights(const Incoming& message);
  void take(const wire::SliceWeights& entry, const Frame& frame);
  void acknowledged(ShardId from, const Incoming& message, Out& out);
  void send_ask(ShardId shard, Out& out);
  void send_initial(ShardId shard, Out& out);
  void send_finished(ShardId shard, Out& out);
  void send_pulls(ShardId shard, std::span<const SliceId> slices, Out& out);
  void send_pushes(ShardId shard, std::span<const SliceId> slices, Out& out);
  void send_push_message(ShardId shard, std::span<const SliceId> slices, Out& out);
  void pull_all(bool exact, Out& out);
  void settle();
  bool has_gradient(SliceId id) const;
  std::vector<SliceId> waiting_slices(ShardId shard, Wait wait) const;
  Header header();
  Sequence link_send(ShardId shard, Link::Wait wait);

  // Constant after construction.
  const ClientOptions options_;
  const Layout& layout_;
  const Placement& placement_;
  const ParameterArena parameters_;
  const GradientArena gradients_;

  // Owned by the comms thread.
  Phase phase_ = Phase::idle;
  Clock clock_;
  Clock finish_clock_;
  bool group_stops_ = false;
  std::uint64_t samples_ = 0;
  bool exact_pull_ = true;
  Sequence sequence_;
  std::deque<Slot> slots_;  // by SliceId; a deque since leases do not move
  std::vector<Link> links_;
  std::uint64_t unanswered_ = 0;  // slices of this clock (or pull) without an answer
  std::uint64_t waited_us_ = 0;
  std::optional<std::string> fault_;
  ClientCounters counters_;
  std::vector<std::vector<SliceId>> by_shard_;  // scratch of push()
};

}  // namespace parley

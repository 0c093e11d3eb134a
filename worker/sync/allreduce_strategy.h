// The all-reduce mode: no server; the workers sum their gradients among themselves, and each applies the same optimizer
// step to its own copy of the weights.
//
// A step of clock c has four parts. At its opening the ranks exchange sample counts and the wish to stop. Slices are
// then all-reduced in slice order, on a thread of our own, as backward finishes them. At the closing they exchange
// which tensors had a gradient and whether all was finite. Only then does the trainer's thread, in finish_step(), run
// the optimizer from half(c) into half(c + 1).
//
// Thread rule: as strategy.h says. Between start() and finish() the comms thread alone calls the collective, the
// trainer's thread alone the optimizer; they hand over in begin_step() and finish_step().
//
// Invariants
//  1. The mean is that of common/optimizer/mean.h; with two ranks it has the bits of a server's. A rank without
//     samples, or a part without a gradient, contributes zeros, whatever its arena holds.
//  2. All ranks decide alike, since they decide on exchanged values only: to stop at a clock, that a tensor keeps
//     weights, slots and step count (nobody touched it, or nobody had samples), that a gradient is not finite. The last
//     is found before any weight or slot of that clock is touched, and is the same RunError on every rank.
//  3. A rank whose data ended goes on taking part without samples, inside finish(), until all have finished; so uneven
//     data holds nobody up and all ranks end with the same weights.
//  4. Buffers take rank 0's value each step.
#pragma once

#include "common/base/types.h"
#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/optimizer/mean.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer/slice_optimizer.h"
#include "worker/collective/collective.h"
#include "worker/sync/slice_gate.h"
#include "worker/sync/step_exchange.h"
#include "worker/sync/strategy.h"
#include "worker/sync/task_thread.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace parley {

struct AllreduceStrategyOptions {
  OptimizerOptions optimizer;
  std::vector<GroupOptions> groups;  // by the layout's group numbers
  ScheduleOptions schedule;
  // Asked at the beginning of each step; throws where the job is over. The ranks need no coordinator to step, but must
  // not run on without one. Empty: nobody is asked.
  std::function<void()> check_job;
};

class AllreduceStrategy final : public Strategy {
 public:
  // Layout, the arenas' memory and the collective outlive this object. The gradient arena of a buffer slice holds the
  // buffer's new value.
  AllreduceStrategy(const AllreduceStrategyOptions& options, const Layout& layout, ParameterArena parameters,
                    GradientArena gradients, Collective& collective);
  // Gives up a step that is under way; an operation already begun is waited for, at most as long as its timeout.
  ~AllreduceStrategy() override;

  // Rank 0's half(0) becomes everybody's. Begins with clock 0.
  Clock start() override;
  // Always `advanced`: the answer to the exchange is not waited for, so a stop shows in finish_step().
  StepResult begin_step(Clock clock, std::uint64_t samples) override;
  void slice_ready(SliceId slice, std::span<const std::uint8_t> present) override;
  StepResult finish_step(Clock clock) override;
  void request_stop(Clock clock) override;
  Clock finish(Clock clock) override;
  // bytes_pushed and bytes_pulled: of the gradients all-reduced so far, and of the buffers sent and taken.
  StrategyStats stats() const override { return stats_; }

 private:
  enum class Outcome : std::uint8_t { advanced, stopped, finished };
  // What this rank brings to a step.
  struct Contribution {
    Clock clock;
    std::uint64_t samples = 0;
    bool stop = false;
    bool finished = false;
  };

  // On the comms thread.
  void run_step(const Contribution& ours);
  void prepare(const Slice& slice, std::span<const std::uint8_t> present, std::span<float> gradient,
               const Contribution& ours);
  void note_non_finite(const Slice& slice, std::span<const float> values, std::optional<std::uint32_t>& tensor) const;
  void share_buffer(const Slice& slice, std::span<const std::uint8_t> present, std::span<float> values, Clock clock);
  void judge(Clock clock) const;
  template <class Operation>
  void timed(Operation&& operation);

  // On the trainer's thread.
  Outcome wait_for_step();
  void apply(Clock clock);

  const AllreduceStrategyOptions options_;
  const Layout& layout_;
  const ParameterArena parameters_;
  const GradientArena gradients_;

  // The trainer's.
  std::vector<SliceOptimizer> optimizers_;  // a slice
  std::vector<std::uint8_t> part_present_;
  std::optional<Clock> stop_at_;
  StrategyStats stats_;

  // The comms thread's while a step runs, the trainer's otherwise.
  Collective& collective_;
  StepExchange exchange_;
  const StepOpening* opening_ = nullptr;
  const StepClosing* closing_ = nullptr;
  MeanScaling scaling_;
  std::vector<std::uint8_t> tensor_present_;
  std::optional<std::uint32_t> non_finite_;  // first tensor of our gradient that is not finite
  std::optional<std::uint32_t> overflow_;    // first tensor whose mean is not finite
  std::chrono::steady_clock::duration busy_{};
  std::uint64_t bytes_pushed_ = 0;
  std::uint64_t bytes_pulled_ = 0;
  Outcome outcome_ = Outcome::advanced;

  SliceGate gate_;    // shared: locks itself
  TaskThread comms_;  // last: it ends before what it uses
};

}  // namespace parley

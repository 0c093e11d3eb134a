// `sync.mode = none`: one worker alone, no network. The optimizer runs in finish_step on the worker's own gradient; the
// reference that every other mode is compared with.
//
// Belongs to the trainer's thread, but for slice_ready (strategy.h), which may be called from one other at a time.
#pragma once

#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer/slice_optimizer.h"
#include "worker/sync/strategy.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley {

struct LocalStrategyOptions {
  OptimizerOptions optimizer;
  std::vector<GroupOptions> groups;  // by TensorSpec::group
  ScheduleOptions schedule;
};

class LocalStrategy final : public Strategy {
 public:
  // The layout and the arenas' memory must outlive the strategy.
  LocalStrategy(const LocalStrategyOptions& options, const Layout& layout, const ParameterArena& parameters,
                const GradientArena& gradients);

  Clock start() override { return Clock(0); }
  StepResult begin_step(Clock clock, std::uint64_t samples) override;
  void slice_ready(SliceId slice, std::span<const std::uint8_t> present) override;
  // RunError naming clock and tensor where a gradient is not finite; the weights of that slice are then untouched.
  StepResult finish_step(Clock clock) override;
  void request_stop(Clock clock) override { stop_at_ = clock; }
  Clock finish(Clock clock) override { return clock; }
  StrategyStats stats() const override { return {}; }

 private:
  void apply(SliceId id, Clock clock);

  const Layout& layout_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  const ScheduleOptions schedule_;
  std::vector<SliceOptimizer> optimizers_;          // a slice
  std::vector<std::vector<std::uint8_t>> present_;  // a byte a part of each slice; empty: not ready yet
  std::uint64_t samples_ = 0;
  std::optional<Clock> stop_at_;
};

}  // namespace parley

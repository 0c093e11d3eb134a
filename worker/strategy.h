// What a trainer needs of any synchronization mode: ServerStrategy (bsp, ssp, asp), AllreduceStrategy and LocalStrategy
// (none) implement it. Torch-free: gradients and weights are slices of the arenas.
//
// The life of a strategy, all calls on the trainer's thread but slice_ready:
//   start() -> { begin_step(c), slice_ready(s) for every slice, finish_step(c) } for c = start, start + 1, ... -> finish(c)
//
// Invariants
//  1. Clock c computes on ParameterArena::half(c), which nobody writes between begin_step(c) and finish_step(c).
//  2. After finish_step(c) returned `advanced`, half(c + 1) holds the weights of clock c + 1, complete.
//  3. The gradient arena is the trainer's to write from begin_step(c) until slice_ready(s) (for slice s), and the
//     strategy's from then until finish_step(c) returns. Slices without gradients are marked ready too.
//
// Every wait has a deadline or ends with the job; failures are RunError with one line that names the peer at fault.
#pragma once

#include "common/base/types.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace parley {

enum class StepResult {
  advanced,  // the weights of the next clock are there
  stopped    // the group stops at this clock: its gradients were given up, call finish(clock)
};

// Seconds of the trainer's thread that a step spent blocked, and bytes of payload since the start.
struct StrategyStats {
  double communication_seconds = 0;  // blocked, less waiting
  double waiting_seconds = 0;        // blocked because other workers were not as far
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  // Clocks ahead of the slowest member, over all answers (bsp: 0).
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  // Updates of a slice that a pushed gradient did not know of.
  double update_lag_mean = 0;
  std::uint64_t update_lag_max = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The module's first weights stand in half(0). Returns the clock to begin with, its weights complete in its half.
  virtual Clock start() = 0;
  // `samples`: how many samples this rank's gradient of this clock is the mean of (0: an empty share). `stopped`
  // where the group stops at or before this clock.
  virtual StepResult begin_step(Clock clock, std::uint64_t samples) = 0;
  // This slice's gradient is complete. present: one byte (0 or 1) a part of the slice, whether that tensor had a
  // gradient; read before the call returns. Any thread; once a slice a step.
  virtual void slice_ready(SliceId slice, std::span<const std::uint8_t> present) = 0;
  // After all slices were marked ready: waits for the weights of clock + 1.
  virtual StepResult finish_step(Clock clock) = 0;
  // Asks the group to stop at `clock` (accuracy reached, time used up). The asker goes on until it is told.
  virtual void request_stop(Clock clock) = 0;
  // No more steps from `clock` on: leaves the group, waits until all have finished, and returns the clock in whose
  // half the final weights stand.
  virtual Clock finish(Clock clock) = 0;

  virtual StrategyStats stats() const = 0;
};

}  // namespace parley

// Which samples each worker takes at each clock (`data.split = static`): a pure function of the options, so every
// process agrees without talking. Clock t takes the next `global_batch` samples of the epoch's permutation
// (epoch_order.h) and rank r a contiguous part of them, in rank order.
//
// Invariants:
//  1. The samples of a clock, read in rank order, do not depend on the number of workers: W workers together take
//     exactly what one worker takes with the whole global batch. A plan for fewer workers can take over at any clock.
//  2. The parts of a clock differ by at most one sample; lower ranks get the larger ones.
//  3. An epoch is a whole number of clocks. Its last clock takes what is left (the tail), split by the same rule, so no
//     sample is dropped, repeated or padded, and epochs never drift. Where a clock has fewer samples than there are
//     workers, the highest ranks get none and still take part.
//
// Belongs to one thread: samples() caches the permutation of the current epoch.
#pragma once

#include "common/base/types.h"
#include "common/data/epoch_order.h"

#include <cstdint>
#include <span>

namespace parley {

struct BatchPlanOptions {
  std::uint64_t samples = 0;       // size of the training set, at least 1
  std::uint64_t global_batch = 0;  // samples a clock over all workers, at least 1; may exceed the set
  std::uint32_t workers = 0;       // at least 1; 1 in sync.mode = none
  std::uint64_t seed = 0;
};

class BatchPlan {
 public:
  explicit BatchPlan(const BatchPlanOptions& options);

  const BatchPlanOptions& options() const { return options_; }

  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Clocks of a run of `epochs` epochs; 0 for none. The product must fit 64 bits.
  std::uint64_t total_steps(std::uint64_t epochs) const;

  // The epoch (0-based) that a clock belongs to. Clocks have no upper end here: the run's length is the caller's.
  std::uint64_t epoch_of(Clock clock) const { return clock.value / steps_per_epoch_; }
  // Whether a clock is the last of its epoch.
  bool is_epoch_end(Clock clock) const;

  // Samples of a clock: over all ranks, and of one rank. Neither computes a permutation.
  std::uint64_t count(Clock clock) const;
  std::uint64_t count(Clock clock, Rank rank) const;

  // The sample ids of a rank at a clock, count(clock, rank) of them, in the order of the batch. Valid until a clock of
  // another epoch is asked for.
  std::span<const std::uint64_t> samples(Clock clock, Rank rank);

 private:
  std::uint64_t epoch_offset(Clock clock) const;

  BatchPlanOptions options_;
  std::uint64_t steps_per_epoch_;
  EpochOrder order_;
};

}  // namespace parley

#include "common/data/batch_plan.h"

#include "common/base/log.h"

#include <algorithm>

namespace parley {
namespace {

struct Part {
  std::uint64_t begin;
  std::uint64_t count;
};

// The `rank`-th of `parts` contiguous parts of [0, total): sizes differ by at most one, the larger ones come first.
Part part_of(std::uint64_t total, std::uint64_t parts, std::uint64_t rank) {
  const std::uint64_t each = total / parts;
  const std::uint64_t remainder = total % parts;
  return {.begin = rank * each + std::min(rank, remainder), .count = each + (rank < remainder ? 1 : 0)};
}

}  // namespace

BatchPlan::BatchPlan(const BatchPlanOptions& options)
    : options_(options), steps_per_epoch_(0), order_(options.seed, options.samples) {
  PARLEY_CHECK(options.global_batch > 0, "a global batch needs at least one sample");
  PARLEY_CHECK(options.workers > 0, "a batch plan needs at least one worker");
  steps_per_epoch_ = options.samples / options.global_batch + (options.samples % options.global_batch != 0 ? 1 : 0);
}

std::uint64_t BatchPlan::total_steps(std::uint64_t epochs) const {
  std::uint64_t steps = 0;
  PARLEY_CHECK(!__builtin_mul_overflow(epochs, steps_per_epoch_, &steps), "{} epochs of {} steps do not fit 64 bits",
               epochs, steps_per_epoch_);
  return steps;
}

bool BatchPlan::is_epoch_end(Clock clock) const { return clock.value % steps_per_epoch_ == steps_per_epoch_ - 1; }

std::uint64_t BatchPlan::epoch_offset(Clock clock) const {
  return clock.value % steps_per_epoch_ * options_.global_batch;
}

std::uint64_t BatchPlan::count(Clock clock) const {
  return std::min(options_.global_batch, options_.samples - epoch_offset(clock));
}

std::uint64_t BatchPlan::count(Clock clock, Rank rank) const {
  PARLEY_CHECK(rank.value < options_.workers, "rank {} of {} workers", rank, options_.workers);
  return part_of(count(clock), options_.workers, rank.value).count;
}

std::span<const std::uint64_t> BatchPlan::samples(Clock clock, Rank rank) {
  PARLEY_CHECK(rank.value < options_.workers, "rank {} of {} workers", rank, options_.workers);
  const Part part = part_of(count(clock), options_.workers, rank.value);
  return order_.of(epoch_of(clock)).subspan(epoch_offset(clock) + part.begin, part.count);
}

}  // namespace parley

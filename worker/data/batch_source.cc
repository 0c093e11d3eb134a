#include "worker/data/batch_source.h"

#include "common/base/log.h"

#include <algorithm>
#include <cmath>

namespace parley {

PlannedBatches::PlannedBatches(const BatchPlanOptions& options, std::uint64_t epochs, Rank rank)
    : plan_(options), epochs_(epochs), rank_(rank) {}

std::optional<Batch> PlannedBatches::next(Clock clock) {
  if (clock.value >= plan_.total_steps(epochs_)) return std::nullopt;
  const BatchPlanOptions& options = plan_.options();
  const std::uint64_t epoch = plan_.epoch_of(clock);
  const std::uint64_t clock_in_epoch = clock.value % plan_.steps_per_epoch();
  const std::uint64_t before = epoch * options.samples + clock_in_epoch * options.global_batch;
  return Batch{epoch, plan_.samples(clock, rank_), before, before + plan_.count(clock)};
}

BlockBatches::BlockBatches(BlockSource& blocks, std::uint64_t seed, std::uint64_t samples, std::uint64_t epochs)
    : blocks_(blocks), order_(seed, samples), epochs_(epochs) {}

std::optional<Batch> BlockBatches::next(Clock /*clock*/) {
  if (!asked_) blocks_.ask();
  asked_ = true;
  const std::optional<Block> block = blocks_.take();
  if (!block) return std::nullopt;
  PARLEY_CHECK(block->epoch < epochs_ && block->begin < block->end && block->end <= order_.samples(),
               "block [{}, {}) of epoch {}", block->begin, block->end, block->epoch);
  blocks_.ask();
  const std::uint64_t before = taken_;
  // A block that somebody gave back comes later than its place in the order.
  taken_ = std::max(taken_, block->epoch * order_.samples() + block->end);
  const auto ids = order_.of(block->epoch).subspan(block->begin, block->end - block->begin);
  return Batch{block->epoch, ids, before, taken_};
}

std::uint64_t BlockBatches::expected_steps(Clock done) const {
  // As many steps for each of the remaining samples as for those so far.
  if (taken_ == 0) return done.value;
  const double share = static_cast<double>(samples_total()) / static_cast<double>(taken_);
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(done.value) * share));
}

}  // namespace parley

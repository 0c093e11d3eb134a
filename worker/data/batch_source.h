// Where a rank's batches come from, clock by clock: a plan that every process computes for itself (`data.split =
// static`), or blocks handed out on demand (`dynamic`; common/data/block_dispenser.h). Torch-free: sample ids only.
//
// Belongs to the trainer's thread.
#pragma once

#include "common/base/types.h"
#include "common/data/batch_plan.h"
#include "common/data/block_dispenser.h"
#include "common/data/epoch_order.h"

#include <cstdint>
#include <optional>
#include <span>

namespace parley {

struct Batch {
  std::uint64_t epoch = 0;             // 0-based
  std::span<const std::uint64_t> ids;  // this rank's samples; none for an empty share. Valid until the next call
  // Samples of the whole run that all ranks together had taken before this batch's clock, and with it; where data is
  // handed out on demand, as far as this rank knows.
  std::uint64_t taken_before = 0;
  std::uint64_t taken_after = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch of a clock, or nothing where this rank's data has ended. Clocks are asked for in ascending order; the
  // first may be any (a restarted worker).
  virtual std::optional<Batch> next(Clock clock) = 0;
  // Samples of the whole run, over all ranks and epochs.
  virtual std::uint64_t samples_total() const = 0;
  // Clocks that this rank will have done at the end of the data, seen from `done`; an estimate on demand.
  virtual std::uint64_t expected_steps(Clock done) const = 0;
};

// The static split.
class PlannedBatches final : public BatchSource {
 public:
  PlannedBatches(const BatchPlanOptions& options, std::uint64_t epochs, Rank rank);

  std::optional<Batch> next(Clock clock) override;
  std::uint64_t samples_total() const override { return plan_.options().samples * epochs_; }
  std::uint64_t expected_steps(Clock) const override { return plan_.total_steps(epochs_); }

 private:
  BatchPlan plan_;
  std::uint64_t epochs_;
  Rank rank_;
};

// How a worker asks the coordinator for blocks.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Sends a request and returns; one at a time. The block that was taken last counts as finished by it.
  virtual void ask() = 0;
  // Waits for the answer; nothing where no block is left. RunError where the coordinator is lost.
  virtual std::optional<Block> take() = 0;
};

// The dynamic split: one block a clock. The next block is asked for before the present one is computed, so that the
// round trip is hidden behind the step.
class BlockBatches final : public BatchSource {
 public:
  // `samples`: size of the training set. `blocks` must outlive this object.
  BlockBatches(BlockSource& blocks, std::uint64_t seed, std::uint64_t samples, std::uint64_t epochs);

  std::optional<Batch> next(Clock clock) override;
  std::uint64_t samples_total() const override { return order_.samples() * epochs_; }
  std::uint64_t expected_steps(Clock done) const override;

 private:
  BlockSource& blocks_;
  EpochOrder order_;
  std::uint64_t epochs_;
  bool asked_ = false;
  std::uint64_t taken_ = 0;  // as in Batch::taken_after
};

}  // namespace parley

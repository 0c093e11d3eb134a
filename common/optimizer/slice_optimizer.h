// The optimizer's state of one slice, and its step: the one place where a mean gradient becomes new weights. Servers
// (server/dense_store.h) and workers without servers (all-reduce, single) run this same class, so they get the same
// bits.
//
// A slice holds parts of several tensors. A tensor without a gradient in a step keeps weights, slots and step count, as
// torch skips a parameter whose grad is undefined; its step count is its own (Adam). Buffers (TensorKind::buffer) have
// no optimizer: their "gradient" is the new value.
//
// Owned by whoever owns the slice; one thread at a time. Nothing is allocated after construction.
#pragma once

#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/optimizer/optimizer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace parley {

class SliceOptimizer {
 public:
  // `slice` must outlive this object.
  SliceOptimizer(const OptimizerOptions& options, const GroupOptions& group, const Slice& slice);

  // weights_out = one step from weights_in, on `gradient`, each slice.count float32 values. present: a byte a part of
  // the slice (0: no gradient); a part that is not present is copied. weights_out must not overlap weights_in.
  void apply(double learning_rate, std::span<const std::uint8_t> present, std::span<const float> gradient,
             std::span<const float> weights_in, std::span<float> weights_out);

  std::size_t slot_count() const { return slots_.size(); }
  // Slot values as slice.count float32 in slot_name() order, and steps taken a part: for checkpoints and comparisons.
  std::span<const float> slot(std::size_t index) const { return slots_[index].values(); }
  std::span<const std::uint64_t> steps() const { return steps_; }

 private:
  const OptimizerOptions options_;
  const GroupOptions group_;
  const Slice& slice_;
  std::vector<FloatBlock> slots_;
  std::vector<std::uint64_t> steps_;
};

}  // namespace parley

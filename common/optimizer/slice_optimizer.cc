#include "common/optimizer/slice_optimizer.h"

#include "common/base/log.h"

namespace parley {

SliceOptimizer::SliceOptimizer(const OptimizerOptions& options, const GroupOptions& group, const Slice& slice)
    : options_(options), group_(group), slice_(slice), steps_(slice.parts.size(), 0) {
  if (slice.kind == TensorKind::buffer) return;
  for (std::size_t slot = 0; slot < parley::slot_count(options); ++slot) slots_.emplace_back(slice.count);
}

void SliceOptimizer::apply(double learning_rate, std::span<const std::uint8_t> present, std::span<const float> gradient,
                           std::span<const float> weights_in, std::span<float> weights_out) {
  PARLEY_CHECK(present.size() == slice_.parts.size() && gradient.size() == slice_.count &&
                   weights_in.size() == slice_.count && weights_out.size() == slice_.count,
               "a slice of {} parts and {} values", slice_.parts.size(), slice_.count);
  for (std::size_t index = 0; index < slice_.parts.size(); ++index) {
    const SlicePart& part = slice_.parts[index];
    const auto in = weights_in.subspan(part.begin, part.count);
    const auto out = weights_out.subspan(part.begin, part.count);
    const auto grad = gradient.subspan(part.begin, part.count);
    if (present[index] == 0) {
      copy_weights(in, out);
    } else if (slice_.kind == TensorKind::buffer) {
      copy_weights(grad, out);
    } else {
      SlotSpans slots;
      for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        slots[slot] = slots_[slot].values().subspan(part.begin, part.count);
      parley::apply(options_, step_scalars(options_, group_, learning_rate, ++steps_[index]), grad, in, out, slots);
    }
  }
}

}  // namespace parley

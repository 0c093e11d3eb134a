#include "worker/sync/local_strategy.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/optimizer/inspect.h"
#include "common/optimizer/mean.h"

#include <fmt/format.h>

namespace parley {

LocalStrategy::LocalStrategy(const LocalStrategyOptions& options, const Layout& layout,
                             const ParameterArena& parameters, const GradientArena& gradients)
    : layout_(layout),
      parameters_(parameters),
      gradients_(gradients),
      schedule_(options.schedule),
      present_(layout.slice_count()) {
  optimizers_.reserve(layout.slice_count());
  for (const Slice& slice : layout.slices()) {
    PARLEY_CHECK(slice.group < options.groups.size(), "group {} of {}", slice.group, options.groups.size());
    optimizers_.emplace_back(options.optimizer, options.groups[slice.group], slice);
    present_[optimizers_.size() - 1].reserve(slice.parts.size());
  }
}

StepResult LocalStrategy::begin_step(Clock clock, std::uint64_t samples) {
  if (stop_at_ && clock >= *stop_at_) return StepResult::stopped;
  samples_ = samples;
  for (auto& flags : present_) flags.clear();
  return StepResult::advanced;
}

void LocalStrategy::slice_ready(SliceId slice, std::span<const std::uint8_t> present) {
  auto& flags = present_[slice.value];
  PARLEY_CHECK(flags.empty() && present.size() == layout_.slice(slice).parts.size(), "slice {}: {} flags after {}",
               slice, present.size(), flags.size());
  flags.assign(present.begin(), present.end());
}

StepResult LocalStrategy::finish_step(Clock clock) {
  for (std::uint32_t index = 0; index < layout_.slice_count(); ++index) apply(SliceId(index), clock);
  return StepResult::advanced;
}

void LocalStrategy::apply(SliceId id, Clock clock) {
  const Slice& slice = layout_.slice(id);
  const auto& flags = present_[id.value];
  PARLEY_CHECK(!flags.empty(), "slice {} was not marked ready at clock {}", id, clock);
  const std::span<float> gradient = gradients_.slice(id);
  // The mean over one worker, by the formula that servers use, so that even the sign of a zero is the same.
  const float* const alone[] = {gradient.data()};
  const std::uint64_t samples[] = {samples_};
  const bool averaged = slice.kind == TensorKind::parameter && samples_ > 0;
  if (averaged && !weighted_mean(alone, samples, gradient)) {
    for (const SlicePart& part : slice.parts)
      if (find_non_finite(gradient.subspan(part.begin, part.count)))
        throw RunError(fmt::format("the gradient of tensor '{}' of rank 0 is not finite at clock {}",
                                   layout_.tensor(part.tensor).name, clock));
  }
  optimizers_[id.value].apply(learning_rate(schedule_, clock), flags, gradient, parameters_.slice(id, clock),
                              parameters_.slice(id, clock.next()));
}

}  // namespace parley

#include "common/optimizer/slice_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace parley {
namespace {

using testing::Each;
using testing::ElementsAre;

// One slice with two tensors of 3 and 2 elements; the second starts on the next 64-byte boundary.
const Layout& two_tensors() {
  static const Layout layout({{.name = "b", .shape = {2}}, {.name = "a", .shape = {3}}}, 1024);
  return layout;
}

std::vector<float> part(const std::vector<float>& values, const Slice& slice, std::size_t index) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(slice.parts[index].begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(slice.parts[index].count)};
}

TEST(SliceOptimizer, ATensorWithoutAGradientKeepsWeightsSlotsAndStepCount) {
  const Slice& slice = two_tensors().slice(SliceId(0));
  const OptimizerOptions options{.kind = OptimizerKind::adam};
  SliceOptimizer optimizer(options, {}, slice);
  ASSERT_EQ(optimizer.slot_count(), 2U);
  const std::vector<float> gradient(slice.count, 0.5F);
  const std::vector<float> start(slice.count, 1.0F);
  std::vector<float> once(slice.count);
  std::vector<float> twice(slice.count);
  const std::vector<std::uint8_t> first_only{1, 0};
  optimizer.apply(0.1, first_only, gradient, start, once);
  EXPECT_THAT(optimizer.steps(), ElementsAre(1, 0));
  EXPECT_THAT(part(once, slice, 1), Each(1.0F));
  EXPECT_THAT(optimizer.slot(0).subspan(slice.parts[1].begin, 2), Each(0.0F));

  // The second tensor's first step is then what the first tensor's was, bias correction included.
  const std::vector<std::uint8_t> both{1, 1};
  optimizer.apply(0.1, both, gradient, once, twice);
  EXPECT_THAT(optimizer.steps(), ElementsAre(2, 1));
  EXPECT_EQ(part(twice, slice, 1)[0], part(once, slice, 0)[0]);
}

TEST(SliceOptimizer, EqualsTheKernelOnEachTensor) {
  const Slice& slice = two_tensors().slice(SliceId(0));
  const OptimizerOptions options{.kind = OptimizerKind::sgd, .momentum = 0.9};
  const GroupOptions group{.weight_decay = 0.01, .rate_scale = 0.5};
  SliceOptimizer optimizer(options, group, slice);
  std::vector<float> weights(slice.count, 1.0F);
  std::vector<float> expected(slice.count, 1.0F);
  std::vector<float> momentum(slice.count);
  const std::vector<std::uint8_t> both{1, 1};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    std::vector<float> gradient(slice.count, 0.1F * static_cast<float>(step));
    std::vector<float> next(slice.count);
    optimizer.apply(0.1, both, gradient, weights, next);
    weights = next;
    apply(options, step_scalars(options, group, 0.1, step), gradient, expected, expected, {momentum, {}});
  }
  EXPECT_EQ(part(weights, slice, 0), part(expected, slice, 0));
  EXPECT_EQ(part(weights, slice, 1), part(expected, slice, 1));
  // Padding belongs to nobody.
  EXPECT_EQ(weights[slice.parts[0].count], 0.0F);
}

TEST(SliceOptimizer, ABufferTakesTheNewValue) {
  const Layout layout({{.name = "mean", .shape = {4}, .kind = TensorKind::buffer}}, 64);
  const Slice& slice = layout.slice(SliceId(0));
  SliceOptimizer optimizer({.kind = OptimizerKind::adam}, {}, slice);
  EXPECT_EQ(optimizer.slot_count(), 0U);
  const std::vector<float> value(slice.count, 7.0F);
  const std::vector<float> old(slice.count, 1.0F);
  std::vector<float> next(slice.count);
  const std::vector<std::uint8_t> present{1};
  const std::vector<std::uint8_t> absent{0};
  optimizer.apply(0.1, present, value, old, next);
  EXPECT_THAT(part(next, slice, 0), Each(7.0F));
  optimizer.apply(0.1, absent, value, old, next);
  EXPECT_THAT(part(next, slice, 0), Each(1.0F));
}

}  // namespace
}  // namespace parley

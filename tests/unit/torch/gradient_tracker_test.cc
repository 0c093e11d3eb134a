#include "worker/training/gradient_tracker.h"

#include "common/base/error.h"
#include "tests/unit/torch/bound_model.h"
#include "tests/unit/torch/tensor_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parley {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Remembers which slices became ready, and with which flags.
class RecordingStrategy final : public Strategy {
 public:
  Clock start() override { return Clock(0); }
  StepResult begin_step(Clock, std::uint64_t) override { return StepResult::advanced; }
  void slice_ready(SliceId slice, std::span<const std::uint8_t> present) override {
    ready.emplace_back(slice.value, std::vector<int>(present.begin(), present.end()));
  }
  StepResult finish_step(Clock) override { return StepResult::advanced; }
  void request_stop(Clock) override {}
  Clock finish(Clock clock) override { return clock; }
  StrategyStats stats() const override { return {}; }

  std::vector<std::pair<std::uint32_t, std::vector<int>>> ready;
};

using Ready = std::pair<std::uint32_t, std::vector<int>>;

at::Tensor trained(at::Tensor values) { return values.set_requires_grad(true); }

// Two layers a, b and one that nothing uses; each fills a slice of 64 bytes.
struct Fixture {
  explicit Fixture(std::uint64_t slice_bytes = 64)
      : model({{"a", a}, {"b", b}, {"unused", unused}}, {{"count", count}}),
        bound(model, slice_bytes),
        tracker(bound.binding, strategy) {}

  at::Tensor loss() const { return ((a * 2).sum() * b).sum(); }

  at::Tensor a = trained(at::ones({16}));
  at::Tensor b = trained(at::ones({16}));
  at::Tensor unused = trained(at::ones({16}));
  at::Tensor count = at::zeros({1});
  TensorModel model;
  BoundModel bound;
  RecordingStrategy strategy;
  GradientTracker tracker;
};

TEST(GradientTracker, SlicesAreReadyDuringBackwardAndTheRestAtItsEnd) {
  Fixture f;
  f.tracker.begin_step();
  f.loss().backward();
  // Arena order is unused, b, a, count. Backward reaches b before a.
  EXPECT_THAT(f.strategy.ready, ElementsAre(Ready{1, {1}}, Ready{2, {1}}));
  EXPECT_THAT(f.bound.gradient("b"), Each(32));
  f.tracker.finish_backward(true);
  EXPECT_THAT(f.strategy.ready, ElementsAre(Ready{1, {1}}, Ready{2, {1}}, Ready{0, {0}}, Ready{3, {1}}));
  EXPECT_THAT(f.bound.gradient("unused"), Each(0));
}

TEST(GradientTracker, ASliceOfSeveralTensorsWaitsForTheLast) {
  Fixture f(256);
  f.tracker.begin_step();
  f.loss().backward();
  EXPECT_TRUE(f.strategy.ready.empty());
  f.tracker.finish_backward(true);
  EXPECT_THAT(f.strategy.ready, ElementsAre(Ready{0, {0, 1, 1}}, Ready{1, {1}}));
}

TEST(GradientTracker, ATensorOverSeveralSlicesMakesAllOfThemReady) {
  const at::Tensor w = trained(at::ones({40}));
  TensorModel model({{"w", w}});
  BoundModel bound(model, 64);
  RecordingStrategy strategy;
  GradientTracker tracker(bound.binding, strategy);
  tracker.begin_step();
  w.sum().backward();
  EXPECT_THAT(strategy.ready, ElementsAre(Ready{0, {1}}, Ready{1, {1}}, Ready{2, {1}}));
}

TEST(GradientTracker, EachStepStartsAfresh) {
  Fixture f;
  f.tracker.begin_step();
  f.loss().backward();
  f.tracker.finish_backward(true);
  f.strategy.ready.clear();
  f.tracker.begin_step();
  (f.unused * 3).sum().backward();
  f.tracker.finish_backward(true);
  EXPECT_THAT(f.strategy.ready, ElementsAre(Ready{0, {1}}, Ready{1, {0}}, Ready{2, {0}}, Ready{3, {1}}));
  EXPECT_THAT(f.bound.gradient("unused"), Each(3));
  EXPECT_THAT(f.bound.gradient("a"), Each(0));
}

TEST(GradientTracker, AnEmptyShareHasNothingPresent) {
  Fixture f;
  f.tracker.begin_step();
  f.tracker.finish_backward(false);
  EXPECT_THAT(f.strategy.ready, ElementsAre(Ready{0, {0}}, Ready{1, {0}}, Ready{2, {0}}, Ready{3, {0}}));
}

template <class Action>
std::string run_error(Action action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(GradientTracker, ASecondGradientInAStepIsAnErrorThatNamesTheTensor) {
  Fixture f;
  f.tracker.begin_step();
  f.loss().backward();
  EXPECT_THAT(run_error([&] { (f.b * 2).sum().backward(); }), AllOf(HasSubstr("'b'"), HasSubstr("second gradient")));
}

TEST(GradientTracker, AGradientOutsideAStepIsAnErrorThatNamesTheTensor) {
  Fixture f;
  EXPECT_THAT(run_error([&] { f.a.sum().backward(); }), AllOf(HasSubstr("'a'"), HasSubstr("outside")));
}

TEST(GradientTracker, AReplacedGradientIsAnErrorThatNamesTheTensor) {
  Fixture f;
  f.tracker.begin_step();
  f.a.mutable_grad().reset();
  EXPECT_THAT(run_error([&] { f.a.sum().backward(); }), AllOf(HasSubstr("'a'"), HasSubstr("gradient arena")));
}

TEST(GradientTracker, HooksEndWithTheTracker) {
  const at::Tensor w = trained(at::ones({4}));
  TensorModel model({{"w", w}});
  BoundModel bound(model);
  const at::Tensor loss = w.sum();  // keeps the gradient accumulator alive
  {
    RecordingStrategy strategy;
    GradientTracker tracker(bound.binding, strategy);
  }
  loss.backward();
  EXPECT_THAT(bound.gradient("w"), Each(1));
}

}  // namespace
}  // namespace parley

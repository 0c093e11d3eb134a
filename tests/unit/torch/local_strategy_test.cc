#include "worker/sync/local_strategy.h"

#include "common/base/error.h"
#include "tests/unit/torch/bound_model.h"
#include "worker/models/registry.h"
#include "worker/training/gradient_tracker.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <memory>
#include <string>

namespace parley {
namespace {

using testing::HasSubstr;

ModelOptions small_mlp() { return {.type = "mlp", .input = {1, 3, 4}, .classes = 5, .hidden = {16, 9}, .seed = 3}; }

LocalStrategyOptions momentum_sgd() {
  return {.optimizer = {.kind = OptimizerKind::sgd, .momentum = 0.9},
          .groups = {{.weight_decay = 5e-3}, {.weight_decay = 0}},
          .schedule = {.kind = ScheduleKind::constant, .base_rate = 0.05}};
}

// A small model trained by the strategy.
struct LocalRun {
  LocalRun() = default;

  StepResult step(Clock clock, const at::Tensor& inputs, const at::Tensor& labels) {
    const auto samples = static_cast<std::uint64_t>(labels.size(0));
    if (strategy.begin_step(clock, samples) == StepResult::stopped) return StepResult::stopped;
    tracker.begin_step();
    if (samples > 0) at::cross_entropy_loss(model->forward(inputs), labels).backward();
    tracker.finish_backward(samples > 0);
    const StepResult result = strategy.finish_step(clock);
    bound.binding.select(clock.next());
    return result;
  }

  std::unique_ptr<Model> model = make_model(small_mlp());
  BoundModel bound{*model, 256, {"*.bias"}};
  LocalStrategy strategy{momentum_sgd(), bound.layout, bound.arenas.parameters(), bound.arenas.gradients()};
  GradientTracker tracker{bound.binding, strategy};
};

TEST(LocalStrategy, TrainsAsTorchDoes) {
  LocalRun run;
  const auto reference = make_model(small_mlp());
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  for (const NamedTensor& item : reference->parameters())
    (item.name.ends_with("bias") ? biases : weights).push_back(item.tensor);
  torch::optim::SGD sgd(
      {torch::optim::OptimizerParamGroup(weights, std::make_unique<torch::optim::SGDOptions>(
                                                      torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(5e-3))),
       torch::optim::OptimizerParamGroup(
           biases, std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(0.05).momentum(0.9)))},
      torch::optim::SGDOptions(0.05));

  at::manual_seed(11);
  for (Clock clock; clock.value < 20; ++clock) {
    const at::Tensor inputs = at::randn({8, 1, 3, 4});
    const at::Tensor labels = at::randint(5, {8}, at::kLong);
    ASSERT_EQ(run.step(clock, inputs, labels), StepResult::advanced);
    sgd.zero_grad();
    at::cross_entropy_loss(reference->forward(inputs), labels).backward();
    sgd.step();
  }
  const auto ours = run.model->parameters();
  const auto theirs = reference->parameters();
  for (std::size_t i = 0; i < ours.size(); ++i)
    EXPECT_LE((ours[i].tensor - theirs[i].tensor).abs().max().item<double>(), 1e-5) << ours[i].name;
}

TEST(LocalStrategy, AStepWithoutSamplesKeepsTheWeights) {
  LocalRun run;
  const auto before = run.bound.weights("fc1.weight", Clock(0));
  run.step(Clock(0), at::randn({0, 1, 3, 4}), at::randint(5, {0}, at::kLong));
  EXPECT_EQ(run.bound.weights("fc1.weight", Clock(1)), before);
  run.step(Clock(1), at::randn({4, 1, 3, 4}), at::randint(5, {4}, at::kLong));
  EXPECT_NE(run.bound.weights("fc1.weight", Clock(2)), before);
}

TEST(LocalStrategy, StopsAtTheClockThatWasAskedFor) {
  LocalRun run;
  run.strategy.request_stop(Clock(1));
  const at::Tensor inputs = at::randn({4, 1, 3, 4});
  const at::Tensor labels = at::randint(5, {4}, at::kLong);
  EXPECT_EQ(run.step(Clock(0), inputs, labels), StepResult::advanced);
  EXPECT_EQ(run.step(Clock(1), inputs, labels), StepResult::stopped);
  EXPECT_EQ(run.strategy.finish(Clock(1)), Clock(1));
}

TEST(LocalStrategy, ANonFiniteGradientIsAnErrorThatNamesTheTensor) {
  LocalRun run;
  at::Tensor inputs = at::randn({4, 1, 3, 4});
  inputs[0].fill_(std::numeric_limits<float>::infinity());
  try {
    run.step(Clock(0), inputs, at::randint(5, {4}, at::kLong));
    FAIL() << "accepted";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 is not finite at clock 0"));
    EXPECT_THAT(error.what(), HasSubstr("fc3.bias"));
  }
}

}  // namespace
}  // namespace parley

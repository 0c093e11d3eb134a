// Our optimizers beside LibTorch's for a hundred steps with the same random gradients: the same weights and the same
// slots within float rounding.
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace parley {
namespace {

constexpr std::size_t kCount = 1000;
constexpr std::uint64_t kSteps = 100;

using TorchOptimizer = std::unique_ptr<torch::optim::Optimizer>;

struct Case {
  std::string name;
  OptimizerOptions options;
  GroupOptions group;
  double rate;
  std::function<TorchOptimizer(const Case&, std::vector<at::Tensor>)> make;
};

// The name in test listings.
void PrintTo(const Case& shown, std::ostream* out) { *out << shown.name; }

TorchOptimizer make_sgd(const Case& c, std::vector<at::Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(c.rate)
                                                                        .momentum(c.options.momentum)
                                                                        .nesterov(c.options.nesterov)
                                                                        .weight_decay(c.group.weight_decay));
}

template <class TorchClass, class TorchOptions>
TorchOptimizer make_adam(const Case& c, std::vector<at::Tensor> parameters) {
  return std::make_unique<TorchClass>(std::move(parameters),
                                      TorchOptions(c.rate)
                                          .betas(std::make_tuple(c.options.beta1, c.options.beta2))
                                          .eps(c.options.epsilon)
                                          .weight_decay(c.group.weight_decay));
}

TorchOptimizer make_adagrad(const Case& c, std::vector<at::Tensor> parameters) {
  return std::make_unique<torch::optim::Adagrad>(
      std::move(parameters),
      torch::optim::AdagradOptions(c.rate).eps(c.options.epsilon).weight_decay(c.group.weight_decay));
}

TorchOptimizer make_rmsprop(const Case& c, std::vector<at::Tensor> parameters) {
  return std::make_unique<torch::optim::RMSprop>(std::move(parameters), torch::optim::RMSpropOptions(c.rate)
                                                                            .alpha(c.options.alpha)
                                                                            .momentum(c.options.momentum)
                                                                            .eps(c.options.epsilon)
                                                                            .weight_decay(c.group.weight_decay));
}

std::vector<Case> all_cases() {
  using enum OptimizerKind;
  const auto adam_torch = make_adam<torch::optim::Adam, torch::optim::AdamOptions>;
  const auto adamw_torch = make_adam<torch::optim::AdamW, torch::optim::AdamWOptions>;
  const GroupOptions none;
  const GroupOptions decay{.weight_decay = 0.01};
  const double adagrad_epsilon = default_epsilon(adagrad);
  return {
      {"sgd", {.kind = sgd}, none, 0.05, make_sgd},
      {"sgd_decay", {.kind = sgd}, decay, 0.05, make_sgd},
      {"momentum", {.kind = sgd, .momentum = 0.9}, decay, 0.05, make_sgd},
      {"nesterov", {.kind = sgd, .momentum = 0.9, .nesterov = true}, decay, 0.05, make_sgd},
      {"adam", {.kind = adam}, none, 1e-2, adam_torch},
      {"adam_decay", {.kind = adam, .beta1 = 0.8, .beta2 = 0.99}, decay, 1e-2, adam_torch},
      {"adamw", {.kind = adamw}, decay, 1e-2, adamw_torch},
      {"adagrad", {.kind = adagrad, .epsilon = adagrad_epsilon}, none, 1e-2, make_adagrad},
      {"adagrad_decay", {.kind = adagrad, .epsilon = adagrad_epsilon}, decay, 1e-2, make_adagrad},
      {"rmsprop", {.kind = rmsprop}, decay, 1e-2, make_rmsprop},
      {"rmsprop_momentum", {.kind = rmsprop, .momentum = 0.9}, decay, 1e-2, make_rmsprop},
  };
}

// A slot of the only parameter, by the name that slot_name() gives it.
at::Tensor torch_slot(const torch::optim::Optimizer& optimizer, const Case& c, std::string_view slot) {
  const torch::optim::OptimizerParamState& any = *optimizer.state().begin()->second;
  switch (c.options.kind) {
    case OptimizerKind::sgd:
      return static_cast<const torch::optim::SGDParamState&>(any).momentum_buffer();
    case OptimizerKind::adam: {
      const auto& state = static_cast<const torch::optim::AdamParamState&>(any);
      return slot == "exp_avg" ? state.exp_avg() : state.exp_avg_sq();
    }
    case OptimizerKind::adamw: {
      const auto& state = static_cast<const torch::optim::AdamWParamState&>(any);
      return slot == "exp_avg" ? state.exp_avg() : state.exp_avg_sq();
    }
    case OptimizerKind::adagrad:
      return static_cast<const torch::optim::AdagradParamState&>(any).sum();
    case OptimizerKind::rmsprop: {
      const auto& state = static_cast<const torch::optim::RMSpropParamState&>(any);
      return slot == "square_avg" ? state.square_avg() : state.momentum_buffer();
    }
  }
  return {};
}

// Largest difference relative to the largest value of the expected array: float rounding of one step is 6e-8 of that.
double relative_difference(std::span<const float> found, const at::Tensor& expected) {
  const float* values = expected.const_data_ptr<float>();
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
    difference = std::max(difference, std::fabs(static_cast<double>(values[i]) - found[i]));
  }
  return difference / largest;
}

class OptimizerTorch : public ::testing::TestWithParam<Case> {};

TEST_P(OptimizerTorch, AgreesWithinRoundingForAHundredSteps) {
  const Case& c = GetParam();
  RandomStream random(11, 0);
  const auto uniform = [&random] { return static_cast<float>(2 * random.uniform() - 1); };
  std::vector<float> weights(kCount);
  std::ranges::generate(weights, uniform);
  at::Tensor parameter = at::from_blob(weights.data(), {static_cast<std::int64_t>(kCount)}).clone();
  parameter.requires_grad_(true);
  const TorchOptimizer torch_optimizer = c.make(c, {parameter});

  std::vector<float> next(kCount);
  std::vector<float> gradient(kCount);
  std::vector<float> slots[kMaxSlots];
  SlotSpans spans;
  for (std::size_t slot = 0; slot < slot_count(c.options); ++slot) {
    slots[slot].resize(kCount);
    spans[slot] = slots[slot];
  }
  parameter.mutable_grad() = at::from_blob(gradient.data(), {static_cast<std::int64_t>(kCount)});
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    std::ranges::generate(gradient, uniform);
    torch_optimizer->step();
    apply(c.options, step_scalars(c.options, c.group, c.rate, step), gradient, weights, next, spans);
    std::swap(weights, next);
    ASSERT_LT(relative_difference(weights, parameter.detach()), 1e-6) << "step " << step;
  }
  for (std::size_t slot = 0; slot < slot_count(c.options); ++slot) {
    const std::string_view slot_label = slot_name(c.options, slot);
    EXPECT_LT(relative_difference(slots[slot], torch_slot(*torch_optimizer, c, slot_label)), 1e-6) << slot_label;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTorch, ::testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace parley

// The optimizers against a reference in double that follows the papers' and torch's formulas, and the contract around
// them: in place or not, slices or whole, skipped tensors.
#include "common/optimizer/optimizer.h"

#include "common/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace parley {
namespace {

std::vector<float> uniform_values(std::size_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2 * random.uniform() - 1);
  return values;
}

struct Case {
  std::string name;
  OptimizerOptions options;
  GroupOptions group;
  double rate;
};

// The name in test listings.
void PrintTo(const Case& shown, std::ostream* out) { *out << shown.name; }

std::vector<Case> all_cases() {
  using enum OptimizerKind;
  return {
      {"sgd", {.kind = sgd}, {}, 0.1},
      {"sgd_decay", {.kind = sgd}, {.weight_decay = 0.05}, 0.1},
      {"momentum", {.kind = sgd, .momentum = 0.9}, {.weight_decay = 0.05}, 0.1},
      {"nesterov", {.kind = sgd, .momentum = 0.9, .nesterov = true}, {.weight_decay = 0.05}, 0.1},
      {"scaled_rate", {.kind = sgd, .momentum = 0.5}, {.rate_scale = 0.25}, 0.1},
      {"adam", {.kind = adam}, {.weight_decay = 0.05}, 0.01},
      {"adamw", {.kind = adamw, .beta1 = 0.8, .beta2 = 0.99}, {.weight_decay = 0.1}, 0.01},
      {"adagrad", {.kind = adagrad, .epsilon = 1e-10}, {.weight_decay = 0.05}, 0.05},
      {"rmsprop", {.kind = rmsprop}, {.weight_decay = 0.05}, 0.01},
      {"rmsprop_momentum", {.kind = rmsprop, .momentum = 0.9, .alpha = 0.95}, {}, 0.01},
  };
}

// One weight in double.
struct Reference {
  double weight;
  double slot0 = 0;
  double slot1 = 0;

  void step(const Case& c, double gradient, double t) {
    const OptimizerOptions& o = c.options;
    const double rate = c.rate * c.group.rate_scale;
    if (o.kind == OptimizerKind::adamw) {
      weight *= 1 - rate * c.group.weight_decay;
    } else {
      gradient += c.group.weight_decay * weight;
    }
    switch (o.kind) {
      case OptimizerKind::sgd:
        slot0 = t == 1 ? gradient : o.momentum * slot0 + gradient;
        weight -= rate * (o.nesterov ? gradient + o.momentum * slot0 : slot0);
        break;
      case OptimizerKind::adam:
      case OptimizerKind::adamw:
        slot0 = o.beta1 * slot0 + (1 - o.beta1) * gradient;
        slot1 = o.beta2 * slot1 + (1 - o.beta2) * gradient * gradient;
        weight -=
            rate * (slot0 / (1 - std::pow(o.beta1, t))) / (std::sqrt(slot1 / (1 - std::pow(o.beta2, t))) + o.epsilon);
        break;
      case OptimizerKind::adagrad:
        slot0 += gradient * gradient;
        weight -= rate * gradient / (std::sqrt(slot0) + o.epsilon);
        break;
      case OptimizerKind::rmsprop:
        slot0 = o.alpha * slot0 + (1 - o.alpha) * gradient * gradient;
        slot1 = o.momentum * slot1 + gradient / (std::sqrt(slot0) + o.epsilon);
        weight -= rate * slot1;
        break;
    }
  }
};

class Optimizer : public ::testing::TestWithParam<Case> {};

TEST_P(Optimizer, FollowsTheReferenceForAHundredSteps) {
  constexpr std::size_t kCount = 333;
  const Case& c = GetParam();
  RandomStream random(1, 0);
  std::vector<float> weights = uniform_values(kCount, random);
  std::vector<float> next(kCount);
  std::vector<float> slots[kMaxSlots];
  SlotSpans spans;
  for (std::size_t slot = 0; slot < slot_count(c.options); ++slot) {
    slots[slot].resize(kCount);
    spans[slot] = slots[slot];
  }
  std::vector<Reference> reference;
  for (const float weight : weights) reference.push_back({.weight = weight});

  for (std::uint64_t t = 1; t <= 100; ++t) {
    const std::vector<float> gradient = uniform_values(kCount, random);
    const std::vector<float> before = weights;
    apply(c.options, step_scalars(c.options, c.group, c.rate, t), gradient, weights, next, spans);
    ASSERT_EQ(weights, before) << "version t must stay readable";
    std::swap(weights, next);
    for (std::size_t i = 0; i < kCount; ++i) {
      reference[i].step(c, gradient[i], static_cast<double>(t));
      ASSERT_NEAR(weights[i], reference[i].weight, 4e-6) << "step " << t << ", element " << i;
    }
  }
}

TEST_P(Optimizer, InPlaceAndCutIntoSlicesGiveTheSameBits) {
  constexpr std::size_t kCount = 1000;
  const Case& c = GetParam();
  RandomStream random(2, 0);
  const std::vector<float> initial = uniform_values(kCount, random);
  const std::vector<float> gradient = uniform_values(kCount, random);
  const std::vector<float> state(kCount, 0.25F);
  const StepScalars scalars = step_scalars(c.options, c.group, c.rate, 3);

  std::vector<float> slot0 = state;
  std::vector<float> slot1 = state;
  std::vector<float> expected(kCount);
  apply(c.options, scalars, gradient, initial, expected, {slot0, slot1});

  std::vector<float> in_place = initial;
  std::vector<float> cut0 = state;
  std::vector<float> cut1 = state;
  const std::size_t cuts[] = {0, 1, 64, 77, 640, kCount};
  for (std::size_t part = 0; part + 1 < std::size(cuts); ++part) {
    const std::size_t begin = cuts[part];
    const std::size_t length = cuts[part + 1] - begin;
    const auto range = std::span(in_place).subspan(begin, length);
    apply(c.options, scalars, std::span(gradient).subspan(begin, length), range, range,
          {std::span(cut0).subspan(begin, length), std::span(cut1).subspan(begin, length)});
  }
  EXPECT_EQ(in_place, expected);
  EXPECT_EQ(cut0, slot0);
  EXPECT_EQ(cut1, slot1);
}

INSTANTIATE_TEST_SUITE_P(All, Optimizer, ::testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(OptimizerSlots, AreThoseOfTorch) {
  using enum OptimizerKind;
  const auto names = [](const OptimizerOptions& options) {
    std::vector<std::string> found;
    for (std::size_t slot = 0; slot < slot_count(options); ++slot) {
      found.emplace_back(slot_name(options, slot));
    }
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({.kind = sgd}), Names{});
  EXPECT_EQ(names({.kind = sgd, .nesterov = true}), Names{});
  EXPECT_EQ(names({.kind = sgd, .momentum = 0.9}), Names{"momentum_buffer"});
  EXPECT_EQ(names({.kind = adam}), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(names({.kind = adamw}), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(names({.kind = adagrad}), Names{"sum"});
  EXPECT_EQ(names({.kind = rmsprop}), Names{"square_avg"});
  EXPECT_EQ(names({.kind = rmsprop, .momentum = 0.9}), (Names{"square_avg", "momentum_buffer"}));
}

// A tensor that has no gradient in some steps ends where the same tensor ends that saw only the other steps.
TEST(OptimizerSkip, LeavesWeightsSlotsAndStepCount) {
  const OptimizerOptions options{.kind = OptimizerKind::adam};
  RandomStream random(3, 0);
  const std::vector<float> initial = uniform_values(100, random);
  std::vector<float> buffers[2] = {initial, std::vector<float>(100)};
  std::vector<float> dense = initial;
  std::vector<float> first(100), second(100), dense_first(100), dense_second(100);
  std::uint64_t step_count = 0;
  std::uint64_t version = 0;
  for (int clock = 0; clock < 20; ++clock, ++version) {
    const std::vector<float>& in = buffers[version % 2];
    std::vector<float>& out = buffers[(version + 1) % 2];
    if (clock % 3 == 1) {
      copy_weights(in, out);
      continue;
    }
    const std::vector<float> gradient = uniform_values(100, random);
    const StepScalars scalars = step_scalars(options, {}, 0.01, ++step_count);
    apply(options, scalars, gradient, in, out, {first, second});
    apply(options, scalars, gradient, dense, dense, {dense_first, dense_second});
  }
  EXPECT_EQ(buffers[version % 2], dense);
  EXPECT_EQ(first, dense_first);
  EXPECT_EQ(second, dense_second);
  EXPECT_EQ(step_count, 13U);
}

TEST(OptimizerScalars, FollowTheStepCountAndTheGroup) {
  const OptimizerOptions adam{.kind = OptimizerKind::adam};
  const GroupOptions group{.weight_decay = 0.5, .rate_scale = 2};
  const StepScalars one = step_scalars(adam, group, 0.1, 1);
  EXPECT_FLOAT_EQ(one.rate, 2.0F);
  EXPECT_FLOAT_EQ(one.root_correction, static_cast<float>(1 / std::sqrt(0.001)));
  EXPECT_EQ(one.coupled_decay, 0.5F);
  EXPECT_EQ(one.decoupled_keep, 1.0F);
  // After many steps the corrections are gone, and nothing overflows on the way.
  const StepScalars late = step_scalars(adam, group, 0.1, 1'000'000'000'000ULL);
  EXPECT_EQ(late.rate, 0.2F);
  EXPECT_EQ(late.root_correction, 1.0F);

  const StepScalars w = step_scalars({.kind = OptimizerKind::adamw}, group, 0.1, 1);
  EXPECT_EQ(w.coupled_decay, 0.0F);
  EXPECT_FLOAT_EQ(w.decoupled_keep, 0.9F);
}

TEST(OptimizerDeathTest, SizesThatDifferAreOurOwnBug) {
  std::vector<float> four(4), five(5);
  const OptimizerOptions momentum{.momentum = 0.9};
  const StepScalars scalars = step_scalars(momentum, {}, 0.1, 1);
  EXPECT_DEATH(apply(momentum, scalars, four, five, five, {five}), "a gradient of 4 elements");
  EXPECT_DEATH(apply(momentum, scalars, five, five, five, {}), "momentum_buffer has 0 elements");
}

}  // namespace
}  // namespace parley

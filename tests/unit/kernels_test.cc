// Every vector level that this CPU has must give the bits of the generic kernels, on numbers of every kind and at every
// length around the vector widths.
#include "common/optimizer/kernels.h"

#include "common/base/random.h"
#include "common/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace parley {
// The name in test listings.
void PrintTo(VectorLevel level, std::ostream* out) { *out << name(level); }

namespace {

constexpr std::array kVectorLevels = {VectorLevel::x86_64_v2, VectorLevel::x86_64_v3, VectorLevel::x86_64_v4};

// Normal numbers over many magnitudes, zeros of both signs, denormals and huge ones.
std::vector<float> mixed_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<float> values(count);
  for (float& value : values) {
    switch (random.below(8)) {
      case 0:
        value = random.below(2) == 0 ? 0.0F : -0.0F;
        break;
      case 1:
        value = static_cast<float>(random.below(1U << 23)) * std::numeric_limits<float>::denorm_min();
        break;
      case 2:
        value = std::numeric_limits<float>::max() * static_cast<float>(random.uniform());
        break;
      case 3: {
        const int exponent = static_cast<int>(random.below(60)) - 30;
        value = static_cast<float>(std::ldexp(random.uniform(), exponent));
        break;
      }
      default:
        value = static_cast<float>(random.uniform());
        break;
    }
    if (random.below(2) == 0) value = -value;
  }
  return values;
}

// The same bits; two NaN count as the same, since which NaN an operation returns may depend on the operands' order.
::testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> found) {
  if (expected.size() != found.size()) return ::testing::AssertionFailure() << "other size";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(found[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << expected[i] << " became " << found[i];
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<float> absolute(std::vector<float> values) {
  for (float& value : values) value = std::fabs(value);
  return values;
}

struct StepResult {
  std::vector<float> weights, slot0, slot1;
};

StepResult three_steps(const KernelTable& table, std::size_t rule, const StepScalars& scalars, std::size_t count) {
  StepResult r{mixed_values(count, 1), absolute(mixed_values(count, 2)), absolute(mixed_values(count, 3))};
  for (std::uint64_t step = 0; step < 3; ++step) {
    const std::vector<float> gradient = mixed_values(count, 4 + step);
    table.step[rule](scalars, StepArrays{gradient.data(), r.weights.data(), r.weights.data(), r.slot0.data(),
                                         r.slot1.data(), count});
  }
  return r;
}

const StepScalars kScalars{.rate = 0.0123F,
                           .coupled_decay = 0.005F,
                           .decoupled_keep = 0.999F,
                           .momentum = 0.9F,
                           .first_keep = 0.9F,
                           .first_gain = 0.1F,
                           .second_keep = 0.999F,
                           .second_gain = 0.001F,
                           .root_correction = 1.7F,
                           .epsilon = 1e-8F};

class KernelLevels : public ::testing::TestWithParam<VectorLevel> {
 protected:
  void SetUp() override {
    if (kernels_of(GetParam()) == nullptr) GTEST_SKIP() << "this CPU has no " << name(GetParam());
  }
  const KernelTable& generic() const { return *kernels_of(VectorLevel::generic); }
  const KernelTable& table() const { return *kernels_of(GetParam()); }
};

TEST_P(KernelLevels, TableIsTheOneOfItsLevel) { EXPECT_EQ(table().level, GetParam()); }

TEST_P(KernelLevels, StepsGiveTheSameBits) {
  for (std::size_t rule = 0; rule < kUpdateRules; ++rule) {
    for (const std::size_t count : {0, 1, 3, 15, 16, 17, 31, 33, 64, 1000, 4099}) {
      const StepResult expected = three_steps(generic(), rule, kScalars, count);
      const StepResult found = three_steps(table(), rule, kScalars, count);
      EXPECT_TRUE(same_bits(expected.weights, found.weights)) << "rule " << rule << ", " << count;
      EXPECT_TRUE(same_bits(expected.slot0, found.slot0)) << "rule " << rule << ", " << count;
      EXPECT_TRUE(same_bits(expected.slot1, found.slot1)) << "rule " << rule << ", " << count;
    }
  }
}

TEST_P(KernelLevels, MeansGiveTheSameBits) {
  for (const std::size_t count : {1, 17, 1023, 1024, 1025, 5000}) {
    std::vector<std::vector<float>> gradients;
    std::vector<const float*> pointers;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      gradients.push_back(mixed_values(count, 20 + rank));
      pointers.push_back(gradients.back().data());
    }
    const std::array<std::uint64_t, 4> samples = {7, 0, 64, 3};
    for (const bool weighted : {false, true}) {
      std::vector<float> expected(count);
      std::vector<float> found(count);
      const bool finite = generic().mean(pointers.data(), samples.data(), 4, weighted, 0.3F, expected.data(), count);
      EXPECT_EQ(finite, table().mean(pointers.data(), samples.data(), 4, weighted, 0.3F, found.data(), count));
      EXPECT_TRUE(same_bits(expected, found));
      generic().finish_mean(gradients[0].data(), 0.7F, expected.data(), count);
      table().finish_mean(gradients[0].data(), 0.7F, found.data(), count);
      EXPECT_TRUE(same_bits(expected, found));
      generic().scale(gradients[0].data(), 0.7F, expected.data(), count);
      table().scale(gradients[0].data(), 0.7F, found.data(), count);
      EXPECT_TRUE(same_bits(expected, found));
    }
  }
}

TEST_P(KernelLevels, SumsOfSquaresGiveTheSameBits) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 1000, 4099}) {
    const std::vector<float> values = mixed_values(count, count);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(generic().sum_of_squares(values.data(), count)),
              std::bit_cast<std::uint64_t>(table().sum_of_squares(values.data(), count)));
  }
}

TEST_P(KernelLevels, NonFiniteIsSeenAtEveryPlace) {
  constexpr std::size_t kCount = 67;
  std::vector<float> out(kCount);
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t place = 0; place < kCount; ++place) {
      std::vector<float> values = mixed_values(kCount, place);
      EXPECT_TRUE(table().all_finite(values.data(), kCount));
      EXPECT_TRUE(table().finish_mean(values.data(), 0.5F, out.data(), kCount));
      values[place] = bad;
      EXPECT_FALSE(table().all_finite(values.data(), kCount));
      EXPECT_FALSE(table().finish_mean(values.data(), 0.5F, out.data(), kCount));
    }
  }
}

// A contraction to fused multiply-adds would keep the bits that rounding the product drops.
TEST_P(KernelLevels, ProductsAreRoundedBeforeTheSum) {
  const float a = 1.0F + 0x1p-12F;  // a * a = 1 + 2^-11 + 2^-24, the last bit is rounded away
  const std::vector<float> gradient(64, -(1.0F + 0x1p-11F));
  std::vector<float> weights(64, a);
  const StepScalars scalars{.rate = 1024, .coupled_decay = a};
  table().step[static_cast<std::size_t>(UpdateRule::sgd)](
      scalars, StepArrays{gradient.data(), weights.data(), weights.data(), nullptr, nullptr, 64});
  EXPECT_EQ(weights, std::vector<float>(64, a));
}

INSTANTIATE_TEST_SUITE_P(All, KernelLevels,
                         ::testing::Values(VectorLevel::generic, VectorLevel::x86_64_v2, VectorLevel::x86_64_v3,
                                           VectorLevel::x86_64_v4),
                         [](const auto& tested) {
                           std::string text(name(tested.param));
                           for (char& c : text) c = c == '-' ? '_' : c;
                           return text;
                         });

TEST(Kernels, BestLevelIsChosenAndAnotherCanBeForced) {
  const VectorLevel best = kernels().level;
  for (const VectorLevel level : kVectorLevels) {
    if (kernels_of(level) != nullptr) {
      EXPECT_GE(best, level);
    }
  }
  force_level(VectorLevel::generic);
  EXPECT_EQ(kernels().level, VectorLevel::generic);
  force_level(best);
  EXPECT_EQ(kernels().level, best);
}

// The public functions go through the table in use.
TEST(Kernels, ForcedLevelRunsTheStep) {
  const VectorLevel best = kernels().level;
  const OptimizerOptions options{.kind = OptimizerKind::adam};
  const StepScalars scalars = step_scalars(options, {}, 0.01, 5);
  std::vector<std::vector<float>> results;
  for (const VectorLevel level : {VectorLevel::generic, best}) {
    force_level(level);
    std::vector<float> weights = mixed_values(1000, 1);
    std::vector<float> first = mixed_values(1000, 2);
    std::vector<float> second = absolute(mixed_values(1000, 3));
    apply(options, scalars, mixed_values(1000, 4), weights, weights, {first, second});
    results.push_back(std::move(weights));
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

}  // namespace
}  // namespace parley

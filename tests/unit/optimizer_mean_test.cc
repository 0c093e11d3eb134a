#include "common/base/random.h"
#include "common/optimizer/mean.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace parley {
namespace {

constexpr std::size_t kCount = 2500;  // more than two of the kernel's blocks, and a tail
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Gradients = std::vector<std::vector<float>>;
using Samples = std::vector<std::uint64_t>;

Gradients random_gradients(std::size_t ranks, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Gradients gradients(ranks, std::vector<float>(kCount));
  for (auto& gradient : gradients) {
    for (float& value : gradient) {
      value = static_cast<float>(2 * random.uniform() - 1);
      if (random.below(10) == 0) value = random.below(2) == 0 ? 0.0F : -0.0F;
    }
  }
  return gradients;
}

std::vector<float> mean_of(const Gradients& gradients, const Samples& samples) {
  std::vector<const float*> pointers;
  for (const auto& gradient : gradients) {
    pointers.push_back(gradient.empty() ? nullptr : gradient.data());
  }
  std::vector<float> out(kCount, -7.0F);
  EXPECT_TRUE(weighted_mean(pointers, samples, out));
  return out;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
  return result;
}

TEST(WeightedMean, OfEqualCountsIsTheSumInRankOrderTimesTheInverse) {
  const Gradients g = random_gradients(3, 1);
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const float first = g[0][i] + g[1][i];
    const float sum = first + g[2][i];
    expected[i] = (sum + 0.0F) * (1.0F / 3.0F);
  }
  EXPECT_EQ(bits(mean_of(g, {16, 16, 16})), bits(expected));
}

TEST(WeightedMean, OfUnequalCountsRoundsEachProductFirst) {
  const Gradients g = random_gradients(3, 2);
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const float a = g[0][i] * 5.0F;
    const float b = g[1][i] * 7.0F;
    const float c = g[2][i] * 11.0F;
    const float first = a + b;
    expected[i] = ((first + c) + 0.0F) * static_cast<float>(1.0 / 23.0);
  }
  EXPECT_EQ(bits(mean_of(g, {5, 7, 11})), bits(expected));
}

// Rank order is visible in the bits: a test that the tests above can fail.
TEST(WeightedMean, DependsOnRankOrder) {
  const Gradients g = random_gradients(3, 3);
  EXPECT_NE(bits(mean_of({g[0], g[1], g[2]}, {4, 4, 4})), bits(mean_of({g[2], g[1], g[0]}, {4, 4, 4})));
}

TEST(WeightedMean, LeavesOutRanksWithoutSamples) {
  const Gradients g = random_gradients(3, 4);
  std::vector<float> poison(kCount, kInfinity);
  EXPECT_EQ(bits(mean_of({g[0], poison, g[2]}, {8, 0, 8})), bits(mean_of({g[0], g[2]}, {8, 8})));
  EXPECT_EQ(bits(mean_of({{}, g[1], {}}, {0, 8, 0})), bits(mean_of({g[1]}, {3})));
}

TEST(WeightedMean, NullGradientIsAZeroGradientThatCounts) {
  const Gradients g = random_gradients(3, 5);
  const std::vector<float> zeros(kCount);
  for (const Samples& samples : {Samples{8, 8, 8}, Samples{8, 9, 10}}) {
    EXPECT_EQ(bits(mean_of({g[0], {}, g[2]}, samples)), bits(mean_of({g[0], zeros, g[2]}, samples)));
    EXPECT_EQ(bits(mean_of({{}, g[1], g[2]}, samples)), bits(mean_of({zeros, g[1], g[2]}, samples)));
    EXPECT_EQ(bits(mean_of({{}, {}, {}}, samples)), bits(zeros));
  }
}

// What all-reduce does: each rank scales its own gradient (zeros if it has no samples), a library adds, each finishes.
TEST(WeightedMean, EqualsScaleSumFinishForTwoRanks) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const Samples& samples : {Samples{32, 32}, Samples{32, 31}, Samples{1, 1000}, Samples{0, 5}, Samples{5, 0}}) {
      Gradients g = random_gradients(2, seed);
      const std::vector<float> expected = mean_of(g, samples);
      const MeanScaling scaling = mean_scaling(samples);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        if (samples[rank] == 0) {
          g[rank].assign(kCount, 0.0F);
        } else {
          scale(g[rank], scaling.before(samples[rank]), g[rank]);
        }
      }
      std::vector<float> sum(kCount);
      for (std::size_t i = 0; i < kCount; ++i) sum[i] = g[1][i] + g[0][i];
      EXPECT_TRUE(finish_mean(scaling, sum, sum));
      EXPECT_EQ(bits(sum), bits(expected)) << samples[0] << " and " << samples[1] << " samples";
    }
  }
}

TEST(WeightedMean, MayOverwriteOneOfTheGradients) {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Gradients g = random_gradients(3, 6);
    const std::vector<float> expected = mean_of(g, {1, 2, 3});
    const std::array<const float*, 3> pointers = {g[0].data(), g[1].data(), g[2].data()};
    EXPECT_TRUE(weighted_mean(pointers, Samples{1, 2, 3}, g[rank]));
    EXPECT_EQ(bits(g[rank]), bits(expected));
  }
}

TEST(WeightedMean, NoNegativeZeroComesOut) {
  const std::vector<float> negative(kCount, -0.0F);
  for (const Samples& samples : {Samples{2, 2}, Samples{2, 3}}) {
    EXPECT_EQ(bits(mean_of({negative, negative}, samples)), bits(std::vector<float>(kCount)));
  }
}

TEST(WeightedMean, SaysWhetherTheResultIsFinite) {
  for (const std::size_t place : {std::size_t{0}, std::size_t{1024}, kCount - 1}) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      Gradients g = random_gradients(2, 7);
      g[1][place] = bad;
      const std::array<const float*, 2> pointers = {g[0].data(), g[1].data()};
      std::vector<float> out(kCount);
      EXPECT_FALSE(weighted_mean(pointers, Samples{4, 4}, out));
      EXPECT_FALSE(weighted_mean(pointers, Samples{4, 5}, out));
      g[0][place] = -bad;  // infinities that cancel leave a NaN
      EXPECT_FALSE(weighted_mean(pointers, Samples{4, 4}, out));
    }
  }
}

TEST(WeightedMean, OverflowOfFiniteGradientsCounts) {
  const std::vector<float> huge(kCount, 3e38F);
  const std::array<const float*, 2> pointers = {huge.data(), huge.data()};
  std::vector<float> out(kCount);
  EXPECT_FALSE(weighted_mean(pointers, Samples{1, 1}, out));
}

TEST(MeanScaling, OfNoSamplesAtAll) {
  EXPECT_EQ(mean_scaling(Samples{0, 0}).after, 0.0F);
  std::vector<float> out(4);
  const std::array<const float*, 1> pointers = {out.data()};
  EXPECT_DEATH((void)weighted_mean(pointers, Samples{0}, out), "none of the 1 ranks has samples");
}

}  // namespace
}  // namespace parley

#include "common/data/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace parley {
namespace {

std::vector<std::uint64_t> copy(std::span<const std::uint64_t> ids) { return {ids.begin(), ids.end()}; }

TEST(EpochOrder, HoldsEverySampleOnce) {
  for (std::uint64_t samples = 1; samples <= 40; ++samples) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      auto ids = copy(EpochOrder(7, samples).of(epoch));
      std::sort(ids.begin(), ids.end());
      std::vector<std::uint64_t> all(samples);
      std::iota(all.begin(), all.end(), std::uint64_t{0});
      EXPECT_EQ(ids, all) << samples << " samples, epoch " << epoch;
    }
  }
}

TEST(EpochOrder, DependsOnSeedAndEpochOnly) {
  EpochOrder order(1, 1000);
  const auto first = copy(order.of(0));
  const auto second = copy(order.of(1));
  EXPECT_NE(first, second);
  EXPECT_EQ(copy(order.of(0)), first) << "going back to an epoch must give the same order";
  EXPECT_EQ(copy(EpochOrder(1, 1000).of(1)), second) << "nor may it depend on what was asked before";
  EXPECT_NE(copy(EpochOrder(2, 1000).of(0)), first);
  EXPECT_NE(copy(EpochOrder(0, 1000).of(1)), first) << "seed and epoch must not be interchangeable";
}

// A run that resumes from a checkpoint of an older build must go on in the same order.
TEST(EpochOrder, NeverChangesBetweenBuilds) {
  EXPECT_EQ(copy(EpochOrder(1, 8).of(0)), (std::vector<std::uint64_t>{3, 0, 1, 6, 2, 5, 7, 4}));
  EXPECT_EQ(copy(EpochOrder(1, 8).of(1)), (std::vector<std::uint64_t>{5, 6, 3, 7, 0, 1, 4, 2}));
}

// Every sample should be equally likely at every place; a shuffle that is off by one is not.
TEST(EpochOrder, IsUniform) {
  constexpr std::uint64_t kSamples = 6;
  constexpr int kEpochs = 12000;
  std::vector<std::vector<int>> seen(kSamples, std::vector<int>(kSamples, 0));
  EpochOrder order(3, kSamples);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto ids = order.of(static_cast<std::uint64_t>(epoch));
    for (std::size_t place = 0; place < ids.size(); ++place) ++seen[place][ids[place]];
  }
  for (const auto& place : seen) {
    for (const int n : place) EXPECT_NEAR(n, kEpochs / int{kSamples}, 200);  // 5 standard deviations
  }
}

}  // namespace
}  // namespace parley

#include "common/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace parley {
namespace {

std::vector<std::uint64_t> draw(std::uint64_t seed, std::uint64_t stream, int count) {
  RandomStream random(seed, stream);
  std::vector<std::uint64_t> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values.push_back(random());
  return values;
}

TEST(Random, the_same_seed_and_stream_give_the_same_values) { EXPECT_EQ(draw(7, 3, 100), draw(7, 3, 100)); }

TEST(Random, streams_and_seeds_share_no_values) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      for (const std::uint64_t value : draw(seed, stream, 10)) seen.insert(value);
    }
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(Random, a_value_below_a_bound_is_uniform) {
  RandomStream random(1, 2);
  constexpr std::uint64_t kBound = 6;
  constexpr int kDraws = 60'000;
  std::array<int, kBound> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(kBound));
  // Five standard deviations of a binomial count.
  const double spread = 5 * std::sqrt(kDraws / 6.0 * (5.0 / 6.0));
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 6.0, spread);
}

TEST(Random, the_smallest_and_the_largest_bound) {
  RandomStream random(1, 2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(random.below(1), 0U);
    EXPECT_LT(random.below(UINT64_MAX), UINT64_MAX);
  }
}

TEST(Random, uniform_stays_in_its_half_open_range) {
  RandomStream random(5, 0);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

}  // namespace
}  // namespace parley

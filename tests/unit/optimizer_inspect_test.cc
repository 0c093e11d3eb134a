#include "common/base/random.h"
#include "common/optimizer/inspect.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace parley {
namespace {

TEST(Inspect, FindsTheFirstNonFiniteValue) {
  std::vector<float> values(100, std::numeric_limits<float>::max());
  values[3] = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(all_finite(values));
  EXPECT_EQ(find_non_finite(values), std::nullopt);
  values[70] = std::numeric_limits<float>::quiet_NaN();
  values[71] = -std::numeric_limits<float>::infinity();
  EXPECT_FALSE(all_finite(values));
  EXPECT_EQ(find_non_finite(values), std::optional<std::size_t>(70));
  EXPECT_TRUE(all_finite({}));
}

double sum_in_documented_order(const std::vector<float>& values) {
  double lanes[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    lanes[i % 16] += value * value;
  }
  double eight[8];
  for (int i = 0; i < 8; ++i) eight[i] = lanes[i] + lanes[i + 8];
  double four[4];
  for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// Many arrays, since another order of the additions gives other bits only in some of them.
TEST(Inspect, SumOfSquaresHasTheDocumentedOrder) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, 0);
    std::vector<float> values(1000 + seed);
    for (float& value : values) value = static_cast<float>(std::exp2(20 * random.uniform()));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of_squares(values)),
              std::bit_cast<std::uint64_t>(sum_in_documented_order(values)));
  }
}

TEST(Inspect, SumOfSquaresOfHugeValuesDoesNotOverflow) {
  const std::vector<float> values(100, 3e38F);
  EXPECT_NEAR(sum_of_squares(values) / (100 * 9e76), 1.0, 1e-6);
  EXPECT_EQ(sum_of_squares({}), 0.0);
}

}  // namespace
}  // namespace parley

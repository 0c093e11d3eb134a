#include "common/base/random.h"
#include "common/optimizer/inspect.h"

#include <gtest/gtest.h>

#include <bit>
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

TEST(Inspect, SumOfSquaresHasTheDocumentedOrder) {
  RandomStream random(1, 0);
  std::vector<float> values(1003);
  for (float& value : values) value = static_cast<float>(random.uniform() * 1e3);
  double lanes[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    lanes[i % 16] += value * value;
  }
  double eight[8];
  for (int i = 0; i < 8; ++i) eight[i] = lanes[i] + lanes[i + 8];
  double four[4];
  for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
  const double expected = (four[0] + four[2]) + (four[1] + four[3]);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of_squares(values)),
            std::bit_cast<std::uint64_t>(expected));
}

TEST(Inspect, SumOfSquaresOfHugeValuesDoesNotOverflow) {
  const std::vector<float> values(100, 3e38F);
  EXPECT_NEAR(sum_of_squares(values) / (100 * 9e76), 1.0, 1e-6);
  EXPECT_EQ(sum_of_squares({}), 0.0);
}

}  // namespace
}  // namespace parley

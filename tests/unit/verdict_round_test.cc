#include "server/core/verdict_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace parley {
namespace {

using testing::ElementsAre;

constexpr Clock kClock{4};

TEST(VerdictRound, decides_once_every_shard_has_spoken) {
  VerdictRound round(2, 0);
  EXPECT_FALSE(round.decide(kClock).has_value());
  round.add(kClock, ShardId(3), {true, {}});
  round.add(kClock, ShardId(3), {true, {}});
  EXPECT_FALSE(round.decide(kClock).has_value()) << "a repeat is not a second voice";
  round.add(Clock(5), ShardId(0), {true, {}});
  EXPECT_FALSE(round.decide(kClock).has_value()) << "nor is another clock's";
  round.add(kClock, ShardId(0), {true, {}});
  const auto decision = round.decide(kClock);
  ASSERT_TRUE(decision.has_value());
  EXPECT_FALSE(decision->skip);
  EXPECT_EQ(decision->gradient_scale, 1.0F);
}

TEST(VerdictRound, the_first_word_counts) {
  VerdictRound round(1, 0);
  round.add(kClock, ShardId(0), {false, {}});
  round.add(kClock, ShardId(0), {true, {}});
  EXPECT_TRUE(round.decide(kClock)->skip);
}

TEST(VerdictRound, one_bad_slice_drops_the_clock) {
  VerdictRound round(2, 1.0);
  round.add(kClock, ShardId(0), {true, {{SliceId(0), 100.0}}});
  round.add(kClock, ShardId(1), {false, {{SliceId(1), 0.0}}});
  EXPECT_TRUE(round.decide(kClock)->skip);
}

TEST(VerdictRound, clips_to_the_norm_of_the_whole_gradient) {
  VerdictRound round(2, 1.0);
  round.add(kClock, ShardId(0), {true, {{SliceId(1), 9.0}}});
  round.add(kClock, ShardId(1), {true, {{SliceId(0), 16.0}}});
  EXPECT_EQ(round.decide(kClock)->gradient_scale, static_cast<float>(1.0 / (5.0 + 1e-6)));
  round.add(Clock(5), ShardId(0), {true, {{SliceId(1), 0.09}}});
  round.add(Clock(5), ShardId(1), {true, {{SliceId(0), 0.16}}});
  EXPECT_EQ(round.decide(Clock(5))->gradient_scale, 1.0F) << "a small gradient is not made larger";
}

// One large slice and a thousand tiny ones: added to the large one each tiny one is lost, added first they count. The
// clip norm is chosen so that the two sums give neighbouring factors.
TEST(VerdictRound, sums_in_slice_order_whoever_owns_the_slices) {
  const SliceVerdict large{SliceId(0), 1.0};
  std::vector<SliceVerdict> tiny;
  double tiny_first = 0;
  for (std::uint32_t slice = 1; slice <= 1000; ++slice) {
    tiny.push_back({SliceId(slice), 1e-16});
    tiny_first += 1e-16;
  }
  tiny_first += 1.0;
  const double norm = std::sqrt(1.0) + 1e-6;
  const double other_norm = std::sqrt(tiny_first) + 1e-6;
  const double between = 0.75 + 0.5 * (std::nextafter(0.75F, 1.0F) - 0.75F);
  const double clip = between * 0.5 * (norm + other_norm);
  const auto expected = static_cast<float>(clip / norm);
  ASSERT_NE(expected, static_cast<float>(clip / other_norm)) << "the numbers tell orders apart";

  VerdictRound together(1, clip);
  std::vector<SliceVerdict> all{large};
  all.insert(all.end(), tiny.begin(), tiny.end());
  together.add(kClock, ShardId(0), {true, all});
  VerdictRound apart(2, clip);
  apart.add(kClock, ShardId(0), {true, tiny});
  apart.add(kClock, ShardId(1), {true, {large}});
  EXPECT_EQ(together.decide(kClock)->gradient_scale, expected);
  EXPECT_EQ(apart.decide(kClock)->gradient_scale, expected);
}

TEST(VerdictRound, forgets_what_lies_below) {
  VerdictRound round(1, 0);
  for (std::uint64_t clock = 0; clock < 5; ++clock) round.add(Clock(clock), ShardId(2), {true, {}});
  round.forget_before(Clock(3));
  EXPECT_THAT(round.clocks(), ElementsAre(Clock(3), Clock(4)));
  EXPECT_FALSE(round.has(Clock(2), ShardId(2)));
  EXPECT_TRUE(round.has(Clock(3), ShardId(2)));
  EXPECT_FALSE(round.has(Clock(3), ShardId(1)));
}

}  // namespace
}  // namespace parley

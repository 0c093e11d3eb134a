#include "server/core/sync_policy.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace parley {
namespace {

// The rule in words: every member has pushed at least clock c - s, so its count is at least c - s + 1.
TEST(SyncPolicy, answers_exactly_within_the_bound) {
  for (std::uint64_t staleness = 0; staleness < 5; ++staleness) {
    const SyncPolicy policy{staleness};
    for (std::uint64_t asked = 0; asked < 12; ++asked) {
      for (std::uint64_t pushed = 0; pushed < 14; ++pushed) {
        const bool within = static_cast<std::int64_t>(pushed) >=
                            static_cast<std::int64_t>(asked) - static_cast<std::int64_t>(staleness) + 1;
        ASSERT_EQ(policy.may_answer(Clock(asked), Clock(pushed)), within)
            << "clock " << asked << ", slowest count " << pushed << ", staleness " << staleness;
        if (within)
          ASSERT_LE(SyncPolicy::lead(Clock(asked), Clock(pushed)), staleness);
        else
          ASSERT_GT(SyncPolicy::lead(Clock(asked), Clock(pushed)), staleness);
      }
    }
  }
}

TEST(SyncPolicy, asp_never_waits) {
  const SyncPolicy policy{SyncPolicy::kUnbounded};
  EXPECT_TRUE(policy.may_answer(Clock(1'000'000'000), Clock(0)));
  EXPECT_TRUE(policy.may_answer(Clock(0), Clock(0)));
}

TEST(SyncPolicy, only_staleness_zero_gathers) {
  EXPECT_TRUE(SyncPolicy{0}.gathers());
  EXPECT_FALSE(SyncPolicy{1}.gathers());
  EXPECT_FALSE(SyncPolicy{SyncPolicy::kUnbounded}.gathers());
}

TEST(SyncPolicy, the_lead_is_counted_in_clocks_ahead_of_the_slowest) {
  EXPECT_EQ(SyncPolicy::lead(Clock(4), Clock(5)), 0U);
  EXPECT_EQ(SyncPolicy::lead(Clock(4), Clock(4)), 1U);
  EXPECT_EQ(SyncPolicy::lead(Clock(4), Clock(0)), 5U);
  EXPECT_EQ(SyncPolicy::lead(Clock(4), Clock(UINT64_MAX)), 0U) << "everybody else has finished";
}

}  // namespace
}  // namespace parley

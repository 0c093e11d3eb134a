#include "common/base/types.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace parley {
namespace {

static_assert(!std::is_convertible_v<Clock, Version>, "a clock is not a version");
static_assert(!std::is_convertible_v<std::uint64_t, Clock>, "a number is not a clock");
static_assert(!std::is_constructible_v<Rank, ShardId>, "a rank is not a shard");
static_assert(sizeof(Rank) == sizeof(std::uint32_t), "an id costs what its integer costs");

TEST(Types, order_and_arithmetic_are_those_of_the_integer) {
  EXPECT_LT(Clock(3), Clock(4));
  EXPECT_EQ(Clock(3).next(), Clock(4));
  EXPECT_EQ(Clock(3).plus(10), Clock(13));
  Version version;
  EXPECT_EQ(++version, Version(1));
}

TEST(Types, they_print_and_hash_as_the_integer) {
  EXPECT_EQ(fmt::format("{} {:04}", Rank(7), Clock(12)), "7 0012");
  const std::unordered_set<SliceId> slices{SliceId(1), SliceId(2), SliceId(1)};
  EXPECT_EQ(slices.size(), 2U);
}

TEST(Types, roles_have_names) {
  EXPECT_STREQ(role_name(Role::server), "server");
  EXPECT_STREQ(role_name(Role::worker), "worker");
}

}  // namespace
}  // namespace parley

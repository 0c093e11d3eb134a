#include "server/core/clock_table.h"

#include "common/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace parley {
namespace {

TEST(ClockTable, the_slowest_is_the_one_who_still_has_to_push) {
  ClockTable table(3);
  WorkerGroup group(3);
  EXPECT_EQ(table.slowest(group), Clock(0));
  for (int i = 0; i < 4; ++i) table.advance(Rank(0));
  for (int i = 0; i < 3; ++i) table.advance(Rank(1));
  table.advance(Rank(2));
  EXPECT_EQ(table.pushed(Rank(1)), Clock(3));
  EXPECT_EQ(table.slowest(group), Clock(1));
  group.finish(Rank(2), Clock(1));
  EXPECT_EQ(table.slowest(group), Clock(3)) << "who has finished holds nobody up";
  group.finish(Rank(1), Clock(5));
  EXPECT_EQ(table.slowest(group), Clock(3)) << "its clocks up to the end are still to come";
  group.finish(Rank(0), Clock(4));
  group.finish(Rank(1), Clock(3));
  EXPECT_EQ(table.slowest(group), kEndOfClocks);
}

// Against counting by hand, over random pushes and ends.
TEST(ClockTable, equals_a_naive_count) {
  RandomStream random(2, 1);
  for (int round = 0; round < 200; ++round) {
    const auto workers = 1 + static_cast<std::uint32_t>(random.below(5));
    ClockTable table(workers);
    WorkerGroup group(workers);
    std::vector<std::uint64_t> counts(workers, 0);
    std::vector<std::uint64_t> ends(workers, UINT64_MAX);
    for (int event = 0; event < 60; ++event) {
      const auto rank = static_cast<std::uint32_t>(random.below(workers));
      if (random.below(15) == 0) {
        ends[rank] = counts[rank] + random.below(2);
        group.finish(Rank(rank), Clock(ends[rank]));
      } else if (counts[rank] < ends[rank]) {
        ++counts[rank];
        table.advance(Rank(rank));
      }
      std::uint64_t least = UINT64_MAX;
      for (std::uint32_t w = 0; w < workers; ++w)
        if (counts[w] < ends[w]) least = std::min(least, counts[w]);
      ASSERT_EQ(table.slowest(group).value, least);
    }
  }
}

}  // namespace
}  // namespace parley

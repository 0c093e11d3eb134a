#include "server/core/worker_group.h"

#include <gtest/gtest.h>

namespace parley {
namespace {

TEST(WorkerGroup, a_worker_pushes_until_it_has_finished) {
  WorkerGroup group(2);
  EXPECT_TRUE(group.pushes(Rank(1), Clock(1'000'000)));
  group.finish(Rank(1), Clock(3));
  EXPECT_TRUE(group.pushes(Rank(1), Clock(2)));
  EXPECT_FALSE(group.pushes(Rank(1), Clock(3)));
  EXPECT_TRUE(group.pushes(Rank(0), Clock(3))) << "the other one goes on";
}

TEST(WorkerGroup, the_lowest_stop_clock_counts) {
  WorkerGroup group(1);
  EXPECT_EQ(group.stop(), kEndOfClocks);
  group.stop_at(Clock(7));
  group.stop_at(Clock(9));
  EXPECT_EQ(group.stop(), Clock(7));
}

TEST(WorkerGroup, knows_its_ranks_and_their_lives) {
  WorkerGroup group(2);
  EXPECT_TRUE(group.contains(Rank(1)));
  EXPECT_FALSE(group.contains(Rank(2)));
  EXPECT_EQ(group.incarnation(Rank(0)), Incarnation(0));
  group.set_incarnation(Rank(0), Incarnation(4));
  EXPECT_EQ(group.incarnation(Rank(0)), Incarnation(4));
  EXPECT_DEATH(group.set_incarnation(Rank(0), Incarnation(3)), "incarnations only grow");
}

}  // namespace
}  // namespace parley

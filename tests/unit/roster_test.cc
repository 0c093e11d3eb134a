#include "server/core/roster.h"

#include <gtest/gtest.h>

namespace parley {
namespace {

constexpr Roster::Key kServer{Role::server, Rank(0)};
constexpr Roster::Key kWorker{Role::worker, Rank(0)};

TEST(Roster, finds_by_rank_incarnation_and_connection) {
  Roster roster(1, 2);
  RosterEntry& entry = roster.enter(kWorker, 0);
  entry.route = Route(5);
  EXPECT_EQ(roster.find(kWorker), &entry);
  EXPECT_EQ(roster.find(kServer), nullptr) << "roles have ranks of their own";
  EXPECT_EQ(roster.find(Role::worker, Rank(0), Incarnation(1)), &entry);
  EXPECT_EQ(roster.find(Role::worker, Rank(0), Incarnation(2)), nullptr);
  EXPECT_EQ(roster.find(Route(5)), kWorker);
  EXPECT_EQ(roster.find(Route(6)), std::nullopt);
}

TEST(Roster, no_incarnation_is_handed_out_twice) {
  Roster roster(1, 1);
  EXPECT_EQ(roster.enter(kWorker, 0).incarnation, Incarnation(1));
  roster.remove(kWorker);
  EXPECT_EQ(roster.enter(kWorker, 0).incarnation, Incarnation(2));
  EXPECT_EQ(roster.enter(kWorker, 7).incarnation, Incarnation(8)) << "above the launcher's count";
  EXPECT_EQ(roster.enter(kWorker, 1).incarnation, Incarnation(9)) << "and above all before";
  EXPECT_EQ(roster.enter(kServer, 0).incarnation, Incarnation(1)) << "each process has its own";
}

TEST(Roster, an_entry_starts_empty) {
  Roster roster(1, 1);
  RosterEntry& first = roster.enter(kWorker, 0);
  first.finished = true;
  first.endpoints = {"a"};
  first.life = 9;
  const RosterEntry& second = roster.enter(kWorker, 0);
  EXPECT_FALSE(second.finished);
  EXPECT_TRUE(second.endpoints.empty());
  EXPECT_EQ(second.life, 0U);
}

TEST(Roster, knows_who_is_missing) {
  Roster roster(2, 3);
  EXPECT_EQ(roster.missing(), "server 0, server 1, worker 0, worker 1, worker 2");
  EXPECT_EQ(roster.free_rank(Role::worker), Rank(0));
  roster.enter({Role::worker, Rank(0)}, 0);
  roster.enter({Role::worker, Rank(2)}, 0);
  EXPECT_EQ(roster.free_rank(Role::worker), Rank(1));
  roster.enter({Role::worker, Rank(1)}, 0);
  EXPECT_EQ(roster.free_rank(Role::worker), std::nullopt);
  roster.enter({Role::server, Rank(0)}, 0);
  EXPECT_EQ(roster.missing(), "server 1");
  EXPECT_FALSE(roster.everybody_is_here());
  roster.enter({Role::server, Rank(1)}, 0);
  EXPECT_TRUE(roster.everybody_is_here());
  EXPECT_EQ(roster.missing(), "");
}

}  // namespace
}  // namespace parley

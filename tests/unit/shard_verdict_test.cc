// Shards that decide a clock together: clipping by the whole gradient's norm, and dropping a clock that is not finite.
#include "tests/support/shard_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <utility>

namespace parley {
namespace {

using test::body_of;
using test::Sender;
using test::ShardHarness;
using test::ShardSetup;
using testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two shards with one slice each: shard 0 owns slice 0 ('b', 16 values), shard 1 slice 1 ('a', 16 values).
class ShardVerdictTest : public testing::Test {
 protected:
  void make(ShardSetup setup) {
    setup.tensors = {{"a", {16}}, {"b", {16}}};
    setup.shards = 2;
    for (std::uint32_t id = 0; id < 2; ++id) {
      setup.id = ShardId(id);
      shards.emplace_back(setup);
      shards.back().initialize();
      ASSERT_EQ(shards.back().shard.slices().size(), 1U);
    }
  }
  // Every worker pushes `clock` with these values to both shards.
  void push_all(std::uint64_t clock, float b, float a) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      shards[0].push(shards[0].worker(rank), clock, b, 0);
      shards[1].push(shards[1].worker(rank), clock, a, 1);
    }
  }
  // Hands over what one shard has to say to the other; false where it has nothing to say.
  bool deliver_verdicts(std::size_t from, bool keep = false) {
    auto& sends = shards[from].out.verdicts.sends();
    if (sends.empty()) return false;
    for (const auto& send : sends) {
      EXPECT_EQ(send.to, ShardId(static_cast<std::uint32_t>(1 - from)));
      shards[1 - from].deliver(Route(0), send.message);
    }
    if (!keep) sends.clear();
    return true;
  }
  std::uint64_t version(std::size_t shard) { return shards[shard].version(static_cast<std::uint32_t>(shard)); }
  float value(std::size_t shard) { return shards[shard].value(static_cast<std::uint32_t>(shard)); }

  std::deque<ShardHarness> shards;
};

TEST_F(ShardVerdictTest, nobody_applies_before_both_have_judged) {
  make({.clip_norm = 1000});
  push_all(0, 1, 1);
  EXPECT_EQ(version(0), 0U);
  EXPECT_THAT(shards[0].answers(), IsEmpty());
  ASSERT_TRUE(deliver_verdicts(0));
  EXPECT_EQ(version(1), 1U) << "shard 1 knows both verdicts";
  EXPECT_EQ(shards[1].answers().size(), 2U);
  EXPECT_EQ(version(0), 0U);
  ASSERT_TRUE(deliver_verdicts(1));
  EXPECT_EQ(version(0), 1U);
  EXPECT_EQ(shards[0].answers().size(), 2U);
  EXPECT_EQ(value(0), -1.0F) << "a norm below the limit changes nothing";
}

TEST_F(ShardVerdictTest, the_norm_is_that_of_the_whole_gradient) {
  make({.clip_norm = 1});
  push_all(0, 3, 4);
  deliver_verdicts(0);
  deliver_verdicts(1);
  // 16 values of 3 and 16 of 4: the norm is 20.
  const auto factor = static_cast<float>(1.0 / (20.0 + 1e-6));
  EXPECT_EQ(value(0), -(3.0F * factor));
  EXPECT_EQ(value(1), -(4.0F * factor));
}

TEST_F(ShardVerdictTest, a_verdict_may_come_before_the_own_pushes_and_twice) {
  make({.clip_norm = 1000});
  for (std::uint32_t rank = 0; rank < 2; ++rank) shards[0].push(shards[0].worker(rank), 0, 1, 0);
  ASSERT_TRUE(deliver_verdicts(0, true));
  ASSERT_TRUE(deliver_verdicts(0));
  EXPECT_EQ(version(1), 0U);
  for (std::uint32_t rank = 0; rank < 2; ++rank) shards[1].push(shards[1].worker(rank), 0, 1, 1);
  EXPECT_EQ(version(1), 1U);
  deliver_verdicts(1);
  EXPECT_EQ(version(0), 1U);
  push_all(1, 1, 1);
  EXPECT_EQ(version(0), 1U) << "each clock needs verdicts of its own";
}

TEST_F(ShardVerdictTest, a_clock_that_is_not_finite_is_dropped_everywhere) {
  make({.skip_non_finite = true, .store = {.optimizer = {.momentum = 0.5}, .schedule = {.base_rate = 1}}});
  push_all(0, 1, 1);
  deliver_verdicts(0);
  deliver_verdicts(1);
  push_all(1, 5, kNan);
  deliver_verdicts(0);
  deliver_verdicts(1);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(version(shard), 2U);
    EXPECT_EQ(value(shard), -1.0F);
    EXPECT_EQ(shards[shard].shard.counters().skipped, 1U);
    EXPECT_EQ(shards[shard].shard.counters().updates, 1U);
    EXPECT_EQ(shards[shard].out.fault, std::nullopt);
    EXPECT_EQ(shards[shard].answers().size(), 4U) << "a dropped clock is answered";
  }
  push_all(2, 1, 1);
  deliver_verdicts(0);
  deliver_verdicts(1);
  EXPECT_EQ(value(0), -2.5F) << "the momentum of clock 0 is still there, nothing of clock 1";
}

TEST_F(ShardVerdictTest, without_skipping_a_gradient_that_is_not_finite_stops_the_job) {
  make({.clip_norm = 1});
  push_all(0, 1, kNan);
  EXPECT_EQ(shards[1].out.fault, "clock 0: gradient of worker 0 is not finite: tensor 'a' has nan at element 0");
  EXPECT_FALSE(deliver_verdicts(1)) << "there is nothing to agree on";
  deliver_verdicts(0);
  EXPECT_EQ(version(0), 0U);
  EXPECT_EQ(version(1), 0U);
}

TEST_F(ShardVerdictTest, a_peer_with_a_new_connection_hears_the_verdicts_again) {
  make({.clip_norm = 1000});
  push_all(0, 1, 1);
  shards[0].out.verdicts.clear();  // lost
  shards[0].shard.peer_connected(ShardId(1), shards[0].out);
  ASSERT_TRUE(deliver_verdicts(0));
  EXPECT_EQ(version(1), 1U);
  // Shard 0 goes on to clock 1; the verdict of clock 0 may still be needed until shard 1 has applied clock 1.
  deliver_verdicts(1);
  push_all(1, 1, 1);
  shards[0].out.verdicts.clear();
  shards[0].shard.peer_connected(ShardId(1), shards[0].out);
  ASSERT_EQ(shards[0].out.verdicts.sends().size(), 2U);
  EXPECT_EQ(test::header_of(shards[0].out.verdicts.sends()[0].message).clock, Clock(0));
  EXPECT_EQ(test::header_of(shards[0].out.verdicts.sends()[1].message).clock, Clock(1));
  deliver_verdicts(0);
  deliver_verdicts(1);
  for (std::uint64_t clock = 2; clock < 6; ++clock) {
    push_all(clock, 1, 1);
    deliver_verdicts(0);
    deliver_verdicts(1);
  }
  shards[0].shard.peer_connected(ShardId(1), shards[0].out);
  EXPECT_EQ(shards[0].out.verdicts.sends().size(), 1U) << "old ones are forgotten";
}

TEST_F(ShardVerdictTest, only_shards_of_this_job_that_own_slices_are_heard) {
  make({.clip_norm = 1000});
  push_all(0, 1, 1);
  auto say = [&](Role role, std::uint32_t shard) {
    wire::VerdictT body;
    body.shard = shard;
    body.finite = true;
    shards[0].deliver(
        Route(0),
        compose({test::kJob, Generation(1), role, Rank(1), Incarnation(1), Clock(0), Sequence(1)}, std::move(body)));
  };
  say(Role::server, 2);
  say(Role::server, 0);
  EXPECT_EQ(shards[0].shard.counters().malformed, 2U);
  say(Role::worker, 1);
  EXPECT_EQ(version(0), 0U);
  say(Role::server, 1);
  EXPECT_EQ(version(0), 1U);
}

TEST(ShardVerdict, shards_without_slices_are_not_waited_for) {
  ShardHarness h({.workers = 1, .clip_norm = 1000, .shards = 5, .tensors = {{"a", {16}}}});
  h.initialize();
  h.push(h.worker(0), 0, 1);
  EXPECT_EQ(h.version(), 1U);
}

TEST(ShardVerdict, a_shard_judges_all_its_slices_together) {
  ShardHarness h({.workers = 1, .clip_norm = 1});
  h.initialize();
  h.push(h.worker(0), 0, 3, 0);
  EXPECT_EQ(h.version(0), 0U);
  h.push(h.worker(0), 0, 4, 1);
  EXPECT_EQ(h.version(0), 1U);
  EXPECT_EQ(h.version(1), 1U);
  // 'b' has 16 values of 3, 'a' two of 4; padding does not count.
  EXPECT_EQ(h.value(0), -(3.0F * static_cast<float>(1.0 / (std::sqrt(16.0 * 9 + 2 * 16) + 1e-6))));
  EXPECT_EQ(h.answers().size(), 2U);
}

TEST(ShardVerdict, a_worker_that_finishes_completes_the_clock_of_the_others) {
  ShardHarness h({.clip_norm = 1000});
  h.initialize();
  for (std::uint32_t slice = 0; slice < 2; ++slice) h.push(h.worker(0), 0, 1, slice);
  EXPECT_EQ(h.version(0), 0U);
  h.finish(h.worker(1), 0);
  EXPECT_EQ(h.version(0), 1U);
  EXPECT_EQ(h.version(1), 1U);
  EXPECT_EQ(h.answers().size(), 2U);
}

}  // namespace
}  // namespace parley

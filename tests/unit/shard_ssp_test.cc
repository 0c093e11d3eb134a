// Shard in ssp and asp: pushes are applied on arrival, answers leave within the staleness bound.
#include "tests/support/shard_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace parley {
namespace {

using test::Answer;
using test::body_of;
using test::Sender;
using test::ShardHarness;
using testing::IsEmpty;

ShardHarness harness(std::uint64_t staleness, std::uint32_t workers = 2) {
  return ShardHarness({.workers = workers, .sync = {staleness}});
}

TEST(ShardSsp, a_push_is_applied_on_arrival_with_the_rate_divided_by_the_workers) {
  ShardHarness h = harness(1, 4);
  h.initialize();
  h.push(h.worker(2), 0, 8);
  EXPECT_EQ(h.value(), -2.0F);
  EXPECT_EQ(h.version(), 1U);
  h.push(h.worker(0), 0, 4, 0, 7);
  EXPECT_EQ(h.value(), -3.0F) << "samples weigh nothing where nobody else is in the mean";
}

// A worker runs ahead of one that stands still: its clocks 0 .. s - 1 are answered, with leads up to exactly s, and the
// next one when the other has pushed.
TEST(ShardSsp, the_lead_is_bounded_by_exactly_the_staleness) {
  for (const std::uint64_t staleness : {1U, 2U, 3U, 7U}) {
    ShardHarness h = harness(staleness);
    h.initialize();
    for (std::uint64_t clock = 0; clock < staleness; ++clock) {
      h.push(h.worker(0), clock, 1);
      const auto answers = h.answers();
      ASSERT_EQ(answers.size(), 1U) << "staleness " << staleness << ", clock " << clock;
      EXPECT_EQ(answers[0].lead, clock + 1);
    }
    const auto held = h.push(h.worker(0), staleness, 1);
    EXPECT_THAT(h.answers(), IsEmpty());
    EXPECT_EQ(h.version(), staleness + 1) << "applied all the same";
    h.push(h.worker(1), 0, 1);
    const auto answers = h.answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].answers, held);
    EXPECT_EQ(answers[0].lead, staleness);
    EXPECT_EQ(answers[0].version, staleness + 2) << "the newest, not the one that its own push made";
    EXPECT_EQ(answers[1].lead, 0U) << "the slow one is ahead of nobody";
  }
}

TEST(ShardSsp, staleness_0_gathers_as_bsp_does) {
  ShardHarness h = harness(0);
  h.initialize();
  h.push(h.worker(0), 0, 2);
  EXPECT_EQ(h.version(), 0U);
  h.push(h.worker(1), 0, 4);
  EXPECT_EQ(h.version(), 1U);
  EXPECT_EQ(h.value(), -3.0F);
}

TEST(ShardAsp, nobody_ever_waits) {
  ShardHarness h = harness(SyncPolicy::kUnbounded);
  h.initialize();
  for (std::uint64_t clock = 0; clock < 50; ++clock) {
    h.push(h.worker(1), clock, 1);
    const auto answers = h.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].version, clock + 1);
    EXPECT_EQ(answers[0].lead, clock + 1);
  }
}

TEST(ShardAsp, the_lag_is_the_number_of_updates_that_the_gradient_did_not_know_of) {
  ShardHarness h = harness(SyncPolicy::kUnbounded);
  h.initialize();
  for (std::uint64_t clock = 0; clock < 3; ++clock) h.push(h.worker(1), clock, 1, 0, 1, clock);
  h.answers();
  h.push(h.worker(0), 0, 1, 0, 1, 0);
  EXPECT_EQ(h.answers().at(0).lag, 3U);
  h.push(h.worker(0), 1, 1, 0, 1, 4);
  EXPECT_EQ(h.answers().at(0).lag, 0U);
  h.push(h.worker(0), 2, 1, 0, 1, 1000);
  EXPECT_EQ(h.answers().at(0).lag, 0U) << "a base version that cannot be counts as the newest";
}

TEST(ShardSsp, the_rate_is_that_of_the_pushers_clock) {
  StoreOptions store{.schedule = {.kind = ScheduleKind::step, .base_rate = 1, .gamma = 0.5}};
  ShardHarness h({.workers = 2, .sync = {SyncPolicy::kUnbounded}, .store = store});
  h.initialize();
  h.push(h.worker(0), 0, 8);
  EXPECT_EQ(h.value(), -4.0F);
  h.push(h.worker(0), 1, 8);
  EXPECT_EQ(h.value(), -6.0F);
  h.push(h.worker(1), 0, 8);
  EXPECT_EQ(h.value(), -10.0F) << "clock 0 of a slow worker, though the slice has version 2";
}

TEST(ShardSsp, a_repeat_is_applied_once_and_answered_within_the_bound) {
  ShardHarness h = harness(1);
  h.initialize();
  h.push(h.worker(0), 0, 2);
  h.push(h.worker(0), 1, 2);
  EXPECT_EQ(h.answers().size(), 1U);
  h.worker(0).route = Route(9);
  const auto repeat = h.push(h.worker(0), 1, 1000);
  EXPECT_THAT(h.answers(), IsEmpty()) << "the bound holds for repeats as well";
  EXPECT_EQ(h.value(), -2.0F);
  EXPECT_EQ(h.shard.counters().repeats, 1U);
  h.push(h.worker(1), 0, 2);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 2U) << "one answer to worker 0, not two";
  EXPECT_EQ(answers[0].route, Route(9));
  EXPECT_EQ(answers[0].answers, repeat);
  EXPECT_EQ(answers[0].value, -3.0F);
}

TEST(ShardSsp, a_late_message_is_dropped) {
  ShardHarness h = harness(SyncPolicy::kUnbounded);
  h.initialize();
  const Outgoing old = h.make_push(h.worker(0), 0, 1000);
  h.push(h.worker(0), 0, 2);
  h.answers();
  h.deliver(Route(3), old);
  EXPECT_THAT(h.answers(), IsEmpty());
  EXPECT_EQ(h.value(), -1.0F);
  EXPECT_EQ(h.shard.counters().late, 1U);
}

TEST(ShardSsp, who_has_finished_holds_nobody_up) {
  ShardHarness h = harness(1);
  h.initialize();
  h.push(h.worker(1), 0, 1);
  for (std::uint64_t clock = 0; clock < 3; ++clock) h.push(h.worker(0), clock, 1);
  EXPECT_EQ(h.answers().size(), 3U) << "clock 2 of worker 0 waits";
  h.finish(h.worker(1), 1);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].route, h.worker(0).route);
  EXPECT_EQ(h.version(), 4U) << "finishing applies nothing";
  for (std::uint64_t clock = 3; clock < 9; ++clock) h.push(h.worker(0), clock, 1);
  EXPECT_EQ(h.answers().size(), 6U);
}

TEST(ShardSsp, each_worker_resumes_at_its_own_clock) {
  ShardHarness h = harness(3);
  h.initialize();
  for (std::uint64_t clock = 0; clock < 3; ++clock) h.push(h.worker(0), clock, 1, 0);
  for (std::uint64_t clock = 0; clock < 2; ++clock) h.push(h.worker(0), clock, 1, 1);
  h.push(h.worker(1), 0, 1, 0);
  h.answers();
  h.send(h.worker(0), wire::AskT());
  auto versions = body_of<wire::Versions>(h.only_reply().message);
  ASSERT_EQ(versions.slices.size(), 2U);
  EXPECT_EQ(versions.slices[0].version(), 4U);
  EXPECT_EQ(versions.slices[0].next_clock(), 3U);
  EXPECT_EQ(versions.slices[1].next_clock(), 2U);
  h.send(h.worker(1), wire::AskT());
  versions = body_of<wire::Versions>(h.only_reply().message);
  EXPECT_EQ(versions.slices[0].next_clock(), 1U);
  EXPECT_EQ(versions.slices[1].next_clock(), 0U);
}

TEST(ShardSsp, a_successors_repeat_of_an_applied_push_is_not_applied_again) {
  ShardHarness h = harness(1);
  h.initialize();
  h.push(h.worker(0), 0, 2);
  h.push(h.worker(0), 1, 2);  // applied, its answer waits
  h.answers();
  Sender successor{Rank(0), Incarnation(2), Route(50)};
  const auto repeat = h.push(successor, 1, 1000);
  EXPECT_EQ(h.value(), -2.0F);
  h.push(h.worker(1), 0, 2);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].route, Route(50));
  EXPECT_EQ(answers[0].answers, repeat);
}

TEST(ShardSsp, an_answer_owed_to_a_dead_incarnation_never_leaves) {
  ShardHarness h = harness(1);
  h.initialize();
  h.push(h.worker(0), 0, 2);
  h.push(h.worker(0), 1, 2);
  h.answers();
  h.shard.learn_incarnation(Rank(0), Incarnation(2));
  h.push(h.worker(1), 0, 2);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].route, h.worker(1).route);
}

TEST(ShardSsp, a_non_finite_gradient_stops_the_job_and_touches_nothing) {
  ShardHarness h = harness(3);
  h.initialize();
  for (std::uint64_t clock = 0; clock < 2; ++clock) h.push(h.worker(1), clock, 2, 1);
  h.answers();
  h.push(h.worker(1), 2, std::numeric_limits<float>::quiet_NaN(), 1);
  EXPECT_EQ(h.out.fault, "clock 2: gradient of worker 1 is not finite: tensor 'a' has nan at element 0");
  EXPECT_THAT(h.answers(), IsEmpty());
  EXPECT_EQ(h.value(1), -2.0F);
  EXPECT_EQ(h.version(1), 2U);
}

}  // namespace
}  // namespace parley

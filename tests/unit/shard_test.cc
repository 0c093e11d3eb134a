// Shard in bsp: first values, gathering, repeats, incarnations, and workers that finish.
#include "server/core/shard.h"

#include "tests/support/shard_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace parley {
namespace {

using test::Answer;
using test::body_of;
using test::Sender;
using test::ShardHarness;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Shard, only_rank_0_is_asked_for_first_values_and_others_wait_for_them) {
  ShardHarness h;
  h.send(h.worker(1), wire::AskT());
  EXPECT_TRUE(h.out.replies.empty()) << "worker 1 is answered when there are values";
  h.send(h.worker(0), wire::AskT());
  auto reply = h.only_reply();
  EXPECT_EQ(reply.to, h.worker(0).route);
  EXPECT_FALSE(body_of<wire::Versions>(reply.message).ready);
  EXPECT_EQ(body_of<wire::Versions>(reply.message).answers, 1U);
  EXPECT_FALSE(h.shard.ready());

  h.deliver(h.worker(0), h.make_initialize(h.worker(0), {SliceId(1)}, 4));
  EXPECT_EQ(body_of<wire::Ack>(h.only_reply().message).answers, 2U);
  EXPECT_FALSE(h.shard.ready()) << "slice 0 is missing";
  h.deliver(h.worker(0), h.make_initialize(h.worker(0), {SliceId(0), SliceId(1)}, 7));
  EXPECT_TRUE(h.shard.ready());
  EXPECT_EQ(h.value(0), 7.0F);
  EXPECT_EQ(h.value(1), 4.0F) << "a repeat changes nothing";
  ASSERT_EQ(h.out.replies.sends().size(), 3U) << "an Ack and two answers";
  const auto versions = body_of<wire::Versions>(h.out.replies.sends()[2].message);
  EXPECT_EQ(h.out.replies.sends()[2].to, h.worker(1).route);
  EXPECT_TRUE(versions.ready);
  ASSERT_EQ(versions.slices.size(), 2U);
  EXPECT_EQ(versions.slices[0].version(), 0U);
}

TEST(Shard, the_newest_ask_is_answered_on_its_connection) {
  ShardHarness h;
  Sender& worker = h.worker(1);
  const Outgoing old = compose(worker.header(), wire::AskT());
  worker.route = Route(7);
  h.send(worker, wire::AskT());
  h.deliver(Route(101), old);
  EXPECT_EQ(h.shard.counters().late, 1U);
  h.deliver(h.worker(0), h.make_initialize(h.worker(0), {SliceId(0), SliceId(1)}, 0));
  ASSERT_EQ(h.out.replies.sends().size(), 2U);
  EXPECT_EQ(h.out.replies.sends()[1].to, Route(7));
  EXPECT_EQ(body_of<wire::Versions>(h.out.replies.sends()[1].message).answers, 2U);
}

TEST(Shard, answers_leave_when_every_push_of_the_clock_is_here) {
  ShardHarness h;
  h.initialize(1);
  const auto first = h.push(h.worker(1), 0, 2);
  EXPECT_THAT(h.answers(), IsEmpty());
  EXPECT_EQ(h.version(), 0U);
  h.now += std::chrono::microseconds(70);
  const auto second = h.push(h.worker(0), 0, 4);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].route, h.worker(0).route);
  EXPECT_EQ(answers[0].answers, second);
  EXPECT_EQ(answers[0].waited_us, 0U);
  EXPECT_EQ(answers[1].route, h.worker(1).route);
  EXPECT_EQ(answers[1].answers, first);
  EXPECT_EQ(answers[1].waited_us, 70U);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.version, 1U);
    EXPECT_EQ(answer.value, -2.0F);  // 1 - (2 + 4) / 2
    EXPECT_EQ(answer.lead, 0U);
    EXPECT_EQ(answer.lag, 0U);
  }
  EXPECT_EQ(h.version(1), 0U) << "slices go on by themselves";
}

// The three numbers give another sum in every order.
TEST(Shard, the_result_does_not_depend_on_the_order_of_arrival) {
  const std::array<float, 3> gradients{3e7F, 1, -3e7F + 8};
  std::vector<std::uint32_t> order{0, 1, 2};
  const float expected = -(((gradients[0] + gradients[1]) + gradients[2]) * static_cast<float>(1.0 / 3));
  ASSERT_NE(expected, -(((gradients[0] + gradients[2]) + gradients[1]) * static_cast<float>(1.0 / 3)));
  do {
    ShardHarness h({.workers = 3});
    h.initialize();
    for (const std::uint32_t rank : order) h.push(h.worker(rank), 0, gradients.at(rank));
    EXPECT_EQ(h.answers().size(), 3U);
    EXPECT_EQ(h.value(), expected);
  } while (std::ranges::next_permutation(order).found);
}

TEST(Shard, shares_of_unequal_size_are_weighted_and_empty_ones_count_as_pushes) {
  ShardHarness h({.workers = 3});
  h.initialize();
  h.push(h.worker(0), 0, 4, 0, 1);
  h.push_nothing(h.worker(1), 0, 0, 0);
  EXPECT_EQ(h.version(), 0U);
  h.push(h.worker(2), 0, 8, 0, 3);
  EXPECT_EQ(h.value(), -7.0F);
  for (std::uint32_t rank = 0; rank < 3; ++rank) h.push_nothing(h.worker(rank), 1, 0, 0);
  EXPECT_EQ(h.version(), 2U);
  EXPECT_EQ(h.value(), -7.0F);
}

TEST(Shard, the_presence_bytes_of_each_slice_are_found) {
  // Slice 0: 'd' and 'c'; slice 1: 'b' and 'a'; slice 2: 'e' of another group.
  ShardHarness h(
      {.workers = 1,
       .tensors =
           {{"e", {8}, ElementType::float32, TensorKind::parameter, 1}, {"a", {8}}, {"b", {8}}, {"c", {8}}, {"d", {8}}},
       .slice_bytes = 128});
  ASSERT_EQ(h.layout.slice_count(), 3U);
  h.initialize();
  wire::PushPullT body;
  body.samples = 1;
  body.slices = {{0, wire::Presence::some, 0, 128}, {2, wire::Presence::none, 0, 0}, {1, wire::Presence::some, 0, 128}};
  body.present = {0, 1, 1, 0};
  const std::vector<float> ones(32, 1.0F);
  Outgoing message = compose(h.worker(0).header(Clock(0)), std::move(body));
  message.payload.push_back(test::frame_of(ones));
  message.payload.emplace_back();
  message.payload.push_back(test::frame_of(ones));
  h.deliver(h.worker(0), message);
  EXPECT_EQ(h.answers().size(), 3U);
  EXPECT_EQ(h.shard.store().values(SliceId(0))[0], 0.0F) << "d";
  EXPECT_EQ(h.shard.store().values(SliceId(0))[16], -1.0F) << "c";
  EXPECT_EQ(h.shard.store().values(SliceId(1))[0], -1.0F) << "b";
  EXPECT_EQ(h.shard.store().values(SliceId(1))[16], 0.0F) << "a";
  EXPECT_EQ(h.shard.counters().bytes_received, 256U);
}

TEST(Shard, a_repeat_of_a_waiting_push_replaces_it_and_its_address) {
  ShardHarness h;
  h.initialize();
  h.push(h.worker(0), 0, 100);
  h.worker(0).route = Route(9);
  const auto repeat = h.push(h.worker(0), 0, 2);
  h.push(h.worker(1), 0, 4);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].route, Route(9));
  EXPECT_EQ(answers[0].answers, repeat);
  EXPECT_EQ(h.value(), -3.0F);
  EXPECT_EQ(h.shard.counters().repeats, 1U);
  EXPECT_EQ(h.shard.counters().pushes, 2U);
}

TEST(Shard, a_repeat_of_an_applied_push_is_answered_and_changes_nothing) {
  ShardHarness h;
  h.initialize();
  h.push(h.worker(0), 0, 2);
  h.push(h.worker(1), 0, 4);
  h.answers();
  h.push(h.worker(1), 1, 50);
  h.worker(0).route = Route(9);
  const auto repeat = h.push(h.worker(0), 0, 1000);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].route, Route(9));
  EXPECT_EQ(answers[0].answers, repeat);
  EXPECT_EQ(answers[0].version, 1U);
  EXPECT_EQ(answers[0].value, -3.0F);
  EXPECT_EQ(h.version(), 1U);
  h.push(h.worker(0), 1, 0);
  EXPECT_EQ(h.value(), -28.0F) << "clock 1 is the mean of its own two pushes";
}

TEST(Shard, a_late_message_of_an_old_connection_is_dropped) {
  ShardHarness h;
  h.initialize();
  const Outgoing old = h.make_push(h.worker(0), 0, 100);
  h.push(h.worker(0), 0, 2);
  h.deliver(Route(3), old);
  EXPECT_EQ(h.shard.counters().late, 1U);
  h.push(h.worker(1), 0, 4);
  EXPECT_EQ(h.value(), -3.0F) << "the newest send counts, not the last to arrive";
  EXPECT_EQ(h.answers()[0].route, h.worker(0).route);
  h.deliver(Route(3), old);
  EXPECT_THAT(h.answers(), IsEmpty()) << "after the clock was applied as well";

  wire::PullT pull;
  pull.slices = {{0, 0}};
  const Outgoing old_pull = compose(h.worker(0).header(Clock(1)), std::move(pull));
  h.push(h.worker(0), 1, 2);
  h.deliver(Route(3), old_pull);
  EXPECT_THAT(h.answers(), IsEmpty());
  EXPECT_EQ(h.shard.counters().late, 3U);
}

TEST(Shard, a_higher_incarnation_voids_what_was_not_applied) {
  for (const bool told_by_coordinator : {false, true}) {
    ShardHarness h;
    h.initialize();
    for (int i = 0; i < 5; ++i) h.push(h.worker(0), 0, 100);
    Sender successor{Rank(0), Incarnation(2), Route(50)};
    if (told_by_coordinator)
      h.shard.learn_incarnation(Rank(0), Incarnation(2));
    else
      h.send(successor, wire::AskT());
    h.out.replies.clear();
    h.push(h.worker(1), 0, 4);
    EXPECT_EQ(h.version(), 0U) << "the dead one's push is gone";
    const auto own = h.push(successor, 0, 2);  // its sequences start again
    const auto answers = h.answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].route, Route(50));
    EXPECT_EQ(answers[0].answers, own);
    EXPECT_EQ(h.value(), -3.0F);
  }
}

TEST(Shard, a_successor_resumes_at_the_applied_version) {
  ShardHarness h;
  h.initialize();
  for (std::uint32_t slice = 0; slice < 2; ++slice)
    for (std::uint32_t rank = 0; rank < 2; ++rank) h.push(h.worker(rank), 0, 1, slice);
  for (std::uint32_t rank = 0; rank < 2; ++rank) h.push(h.worker(rank), 1, 1, 0);
  h.push(h.worker(0), 1, 1, 1);  // received, not applied
  h.answers();
  Sender successor{Rank(0), Incarnation(2), Route(50)};
  h.send(successor, wire::AskT());
  const auto versions = body_of<wire::Versions>(h.only_reply().message);
  ASSERT_EQ(versions.slices.size(), 2U);
  EXPECT_EQ(versions.slices[0].next_clock(), 2U);
  EXPECT_EQ(versions.slices[1].next_clock(), 1U);

  wire::PullT pull;
  pull.exact = true;
  pull.slices = {{0, 1}, {1, 1}};
  h.send(successor, std::move(pull), Clock(1));
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].version, 1U) << "not the newest: that very version";
  EXPECT_EQ(answers[0].value, -1.0F);
}

TEST(Shard, a_lower_incarnation_is_told_that_it_has_ended) {
  ShardHarness h;
  h.initialize();
  Sender successor{Rank(0), Incarnation(3), Route(50)};
  h.push(successor, 0, 2);
  h.push(h.worker(0), 0, 100);
  const auto reply = h.only_reply();
  EXPECT_EQ(reply.to, h.worker(0).route);
  const auto error = body_of<wire::Error>(reply.message);
  EXPECT_EQ(error.fault, wire::Fault::ended);
  EXPECT_EQ(error.text, "worker 0 lives on in incarnation 3, this is 1");
  h.push(h.worker(1), 0, 4);
  EXPECT_EQ(h.value(), -3.0F);
}

TEST(Shard, a_pull_gets_the_newest_or_one_very_version) {
  ShardHarness h({.workers = 1});
  h.initialize();
  for (std::uint64_t clock = 0; clock < 3; ++clock) h.push(h.worker(0), clock, 1);
  h.answers();
  auto pull = [&](bool exact, std::uint64_t version) {
    wire::PullT body;
    body.exact = exact;
    body.slices = {{0, version}};
    h.send(h.worker(0), std::move(body), Clock(3));
    return h.answers();
  };
  EXPECT_EQ(pull(false, 0).at(0).version, 3U);
  EXPECT_EQ(pull(true, 3).at(0).value, -3.0F);
  EXPECT_EQ(pull(true, 2).at(0).value, -2.0F);
  EXPECT_EQ(h.shard.counters().malformed, 0U);
  EXPECT_THAT(pull(true, 1), IsEmpty());
  EXPECT_EQ(h.shard.counters().malformed, 1U);
  EXPECT_EQ(h.shard.last_malformed(), "server 0: version 1 of slice 0 is asked for, 3 is the newest");
}

TEST(Shard, who_has_finished_holds_nobody_up) {
  ShardHarness h;
  h.initialize();
  h.push(h.worker(1), 0, 4);
  h.push(h.worker(0), 0, 2);
  h.push(h.worker(0), 1, 10);
  h.answers();
  h.finish(h.worker(1), 1);
  ASSERT_EQ(h.out.replies.sends().size(), 2U);
  EXPECT_EQ(h.out.replies.sends()[0].to, h.worker(1).route);
  EXPECT_EQ(body_of<wire::Ack>(h.out.replies.sends()[0].message).answers, h.worker(1).sequence);
  const auto answers = h.answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].route, h.worker(0).route);
  EXPECT_EQ(answers[0].version, 2U);
  EXPECT_EQ(answers[0].value, -13.0F) << "the mean of one push";
  h.push(h.worker(0), 2, 1);
  EXPECT_EQ(h.answers().size(), 1U);
  h.finish(h.worker(0), 3);
  h.finish(h.worker(0), 3);
  EXPECT_EQ(h.version(), 3U) << "nobody pushes, nothing is applied";
}

TEST(Shard, pushes_before_the_end_still_count) {
  ShardHarness h;
  h.initialize();
  h.push(h.worker(1), 0, 4);
  h.finish(h.worker(1), 1);
  EXPECT_EQ(h.version(), 0U);
  h.push(h.worker(0), 0, 2);
  EXPECT_EQ(h.value(), -3.0F);
}

TEST(Shard, a_clock_at_which_the_group_stops_is_not_applied) {
  for (const bool group_stops : {false, true}) {
    ShardHarness h;
    h.initialize();
    h.push(h.worker(0), 0, 4);
    h.finish(h.worker(1), 0, group_stops);
    EXPECT_EQ(h.version(), group_stops ? 0U : 1U);
    EXPECT_EQ(h.answers().size(), group_stops ? 0U : 1U);
    h.finish(h.worker(0), group_stops ? 0 : 1, group_stops);
    EXPECT_EQ(body_of<wire::Ack>(h.only_reply().message).answers, h.worker(0).sequence);
    EXPECT_EQ(h.version(), group_stops ? 0U : 1U);
  }
}

TEST(Shard, a_non_finite_gradient_stops_the_job_and_touches_nothing) {
  ShardHarness h;
  h.initialize(5);
  for (std::uint32_t rank = 0; rank < 2; ++rank) h.push(h.worker(rank), 0, 1);
  h.answers();
  h.push(h.worker(1), 1, std::numeric_limits<float>::infinity());
  EXPECT_EQ(h.out.fault, std::nullopt) << "found when the clock is complete";
  h.push(h.worker(0), 1, 1);
  EXPECT_EQ(h.out.fault, "clock 1: gradient of worker 1 is not finite: tensor 'b' has inf at element 0");
  EXPECT_THAT(h.answers(), IsEmpty());
  h.out.fault.reset();
  h.push(h.worker(1), 1, 1);
  h.push(h.worker(0), 0, 1, 1);
  h.push(h.worker(1), 0, 1, 1);
  EXPECT_EQ(h.out.fault, std::nullopt) << "said once";
  EXPECT_THAT(h.answers(), IsEmpty()) << "nothing goes on";
  EXPECT_EQ(h.version(0), 1U);
  EXPECT_EQ(h.value(0), 4.0F);
  EXPECT_EQ(h.version(1), 0U);
}

}  // namespace
}  // namespace parley

// ParameterClient when nothing is lost: where it resumes, steps, what its pushes look like, and the end.
#include "worker/core/parameter_client.h"

#include "tests/support/client_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace parley {
namespace {

using test::body_of;
using test::ClientHarness;
using test::header_of;
using test::type_of;
using testing::ElementsAre;
using testing::IsEmpty;
using Sent = ClientHarness::Sent;

TEST(ParameterClient, the_harness_is_as_these_tests_think) {
  const ClientHarness h;
  ASSERT_EQ(h.layout.slice_count(), 3U);
  EXPECT_THAT(h.placement.slices(ShardId(0)), ElementsAre(SliceId(0), SliceId(2)));
  EXPECT_THAT(h.placement.slices(ShardId(1)), ElementsAre(SliceId(1)));
}

TEST(ParameterClient, asks_every_shard_in_its_own_name) {
  ClientHarness h;
  const Sent asks = h.start();
  ASSERT_EQ(asks.size(), 2U);
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(asks[shard].to, ShardId(shard));
    EXPECT_EQ(type_of(asks[shard].message), wire::Body::Ask);
    const Header header = header_of(asks[shard].message);
    EXPECT_EQ(header.role, Role::worker);
    EXPECT_EQ(header.rank, Rank(3));
    EXPECT_EQ(header.incarnation, Incarnation(7));
    EXPECT_EQ(header.sequence, Sequence(shard + 1)) << "sequences grow";
  }
  EXPECT_EQ(h.client.waiting_for(), "shard 0: its versions; shard 1: its versions");
}

TEST(ParameterClient, resumes_at_the_smallest_applied_version_and_pulls_exactly_that) {
  ClientHarness h;
  h.start();
  EXPECT_THAT(h.versions(0, 1, {{0, 6, 6}, {2, 5, 5}}), IsEmpty()) << "until all shards have spoken";
  EXPECT_FALSE(h.client.complete());
  const Sent pulls = h.versions(1, 2, {{1, 6, 6}});
  EXPECT_EQ(h.client.clock(), Clock(5));
  ASSERT_EQ(pulls.size(), 2U);
  EXPECT_TRUE(body_of<wire::Pull>(pulls[0].message).exact);
  EXPECT_EQ(header_of(pulls[0].message).clock, Clock(5));
  for (const Sent::value_type& pull : pulls)
    for (const auto& entry : body_of<wire::Pull>(pull.message).slices) EXPECT_EQ(entry.version(), 5U);
  EXPECT_THAT(ClientHarness::slices_of(pulls[0].message), ElementsAre(0, 2));
  EXPECT_EQ(h.client.waiting_for(), "shard 0: 2 slices of clock 5; shard 1: 1 slices of clock 5");
  h.answer_all(pulls, 5, 2.5F);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.waiting_for(), "");
  for (std::uint32_t slice = 0; slice < 3; ++slice) EXPECT_EQ(h.weight(5, slice), 2.5F);
  EXPECT_EQ(h.client.counters().bytes_pulled, 192U);
  EXPECT_EQ(h.client.counters().answers, 0U) << "a pull is no step";
}

TEST(ParameterClient, in_ssp_it_resumes_at_its_own_clock_and_pulls_the_newest) {
  ClientHarness h({.gathers = false});
  h.start();
  h.versions(0, 1, {{0, 40, 9}, {2, 38, 8}});
  const Sent pulls = h.versions(1, 2, {{1, 41, 9}});
  EXPECT_EQ(h.client.clock(), Clock(8));
  EXPECT_FALSE(body_of<wire::Pull>(pulls[0].message).exact);
  h.answer_all(pulls, 43, 1);
  EXPECT_TRUE(h.client.complete());
  h.client.begin(Clock(8), 4);
  const Sent pushes = h.push({0});
  EXPECT_EQ(body_of<wire::PushPull>(pushes[0].message).slices[0].base_version(), 43U);
}

TEST(ParameterClient, first_values_leave_when_a_shard_asks_for_them) {
  ClientHarness h;
  std::ranges::fill(h.half0.values(), 9.0F);
  h.start();
  h.versions(1, 2, {{1, 0, 0}});
  const Sent initial = h.versions(0, 1, {}, false);
  ASSERT_EQ(initial.size(), 1U);
  EXPECT_EQ(initial[0].to, ShardId(0));
  const auto body = body_of<wire::Initialize>(initial[0].message);
  ASSERT_EQ(body.slices.size(), 2U) << "its own slices";
  EXPECT_EQ(body.slices[1].slice(), 2U);
  EXPECT_EQ(body.slices[1].bytes(), 64U);
  EXPECT_EQ(test::floats(initial[0].message.payload.at(1)), std::vector<float>(16, 9.0F));
  EXPECT_EQ(h.client.waiting_for(), "shard 0: its first values' acknowledgement");
  EXPECT_THAT(h.ack(0, 1), IsEmpty()) << "not the answer to this";
  const Sent again = h.ack(0, 3);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(type_of(again[0].message), wire::Body::Ask);
  h.answer_all(h.versions(0, 4, {{0, 0, 0}, {2, 0, 0}}), 0, 9);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.clock(), Clock(0));
}

TEST(ParameterClient, the_answers_of_a_step_arrive_in_the_other_half) {
  ClientHarness h;
  h.resume(4, 1);
  h.client.begin(Clock(4), 32);
  EXPECT_FALSE(h.client.complete());
  const Sent pushes = h.push({2, 1, 0});
  ASSERT_EQ(pushes.size(), 2U);
  h.answer(1, ClientHarness::sequence_of(pushes[1]), 5, 7, 2, 3, 40);
  EXPECT_FALSE(h.client.complete());
  EXPECT_EQ(h.weight(4, 1), 1.0F) << "backward may still read clock 4";
  EXPECT_EQ(h.weight(5, 1), 7.0F);
  h.answer(0, ClientHarness::sequence_of(pushes[0]), 5, 7, 1, 0, 90);
  h.answer(2, ClientHarness::sequence_of(pushes[0]), 5, 7, 0, 0, 10);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.clock(), Clock(5));
  EXPECT_EQ(h.client.waited_us(), 90U) << "the longest";
  EXPECT_EQ(h.weight(4, 0), 1.0F);
  EXPECT_EQ(h.client.counters().answers, 3U);
  EXPECT_EQ(h.client.counters().lead_sum, 3U);
  EXPECT_EQ(h.client.counters().lead_max, 2U);
  EXPECT_EQ(h.client.counters().lag_sum, 3U);
  EXPECT_EQ(h.client.counters().lag_max, 3U);
  EXPECT_EQ(h.client.counters().bytes_pushed, 192U);
  h.client.begin(Clock(5), 32);
  EXPECT_EQ(h.client.waited_us(), 0U);
}

TEST(ParameterClient, a_push_says_what_had_a_gradient_and_lends_the_arena) {
  // Slice 0 holds 'd' and 'c', slice 1 'b' and 'a'.
  ClientHarness h(
      {.tensors =
           {{"a", {16}}, {"b", {16}}, {"c", {16}}, {"d", {16}}, {"e", {16}, ElementType::float32, TensorKind::buffer}},
       .slice_bytes = 128,
       .shards = 1});
  ASSERT_EQ(h.layout.slice_count(), 3U);
  h.resume(3);
  h.client.begin(Clock(3), 17);
  const Sent pushes = h.push({0, 1, 2}, {{1, 1}, {0, 1}, {0}});
  ASSERT_EQ(pushes.size(), 1U);
  EXPECT_EQ(header_of(pushes[0].message).clock, Clock(3));
  const auto body = body_of<wire::PushPull>(pushes[0].message);
  EXPECT_EQ(body.samples, 17U);
  ASSERT_EQ(body.slices.size(), 3U);
  EXPECT_EQ(body.slices[0].presence(), wire::Presence::all);
  EXPECT_EQ(body.slices[1].presence(), wire::Presence::some);
  EXPECT_EQ(body.slices[2].presence(), wire::Presence::none);
  EXPECT_THAT(body.present, ElementsAre(0, 1)) << "for slices with `some` only";
  EXPECT_EQ(body.slices[1].bytes(), 128U);
  EXPECT_EQ(body.slices[2].bytes(), 0U);
  EXPECT_EQ(body.slices[0].base_version(), 3U);
  ASSERT_EQ(pushes[0].message.payload.size(), 3U);
  EXPECT_EQ(static_cast<const void*>(pushes[0].message.payload[1].bytes().data()),
            static_cast<const void*>(h.gradients.slice(SliceId(1)).data()));
  EXPECT_EQ(pushes[0].message.payload[2].size(), 0U);
}

TEST(ParameterClient, slices_for_one_shard_share_messages_up_to_a_size) {
  ClientHarness h({.shards = 1, .message_bytes_max = 128});
  h.resume();
  h.client.begin(Clock(0), 1);
  const Sent two = h.push({0, 1, 2});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_THAT(ClientHarness::slices_of(two[0].message), ElementsAre(0, 1));
  EXPECT_THAT(ClientHarness::slices_of(two[1].message), ElementsAre(2));
  EXPECT_LT(ClientHarness::sequence_of(two[0]), ClientHarness::sequence_of(two[1]));

  ClientHarness small({.shards = 1, .message_bytes_max = 1});
  small.resume();
  small.client.begin(Clock(0), 1);
  EXPECT_EQ(small.push({0, 1, 2}).size(), 3U) << "a slice larger than a message still goes";

  ClientHarness empty({.shards = 1, .message_bytes_max = 64});
  empty.resume();
  empty.client.begin(Clock(0), 1);
  EXPECT_EQ(empty.push({0, 1, 2}, {{0}, {1}, {0}}).size(), 1U) << "what has no gradient has no bytes";
}

TEST(ParameterClient, gradients_are_idle_when_no_frame_over_them_is_out) {
  ClientHarness h;
  h.resume();
  h.client.begin(Clock(0), 1);
  Sent pushes = h.push({0, 1, 2});
  h.answer_all(pushes, 1, 1);
  EXPECT_TRUE(h.client.complete());
  EXPECT_FALSE(h.client.gradients_idle()) << "answered, but the frames are still out";
  pushes.pop_back();
  EXPECT_FALSE(h.client.gradients_idle());
  pushes.clear();
  EXPECT_TRUE(h.client.gradients_idle());
}

TEST(ParameterClient, ends_when_every_shard_knows_and_then_pulls_the_final_weights) {
  ClientHarness h;
  h.resume(2);
  const Sent last = h.finish(2);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(header_of(last[0].message).clock, Clock(2));
  EXPECT_FALSE(body_of<wire::Finished>(last[0].message).group_stops);
  EXPECT_EQ(h.client.waiting_for(),
            "shard 0: the acknowledgement that this worker has finished; shard 1: the acknowledgement that this worker "
            "has finished");
  h.ack(0, ClientHarness::sequence_of(last[0]));
  EXPECT_FALSE(h.client.finished());
  h.ack(1, 1);
  EXPECT_FALSE(h.client.finished()) << "an old answer";
  h.ack(1, ClientHarness::sequence_of(last[1]));
  EXPECT_TRUE(h.client.finished());
  const Sent pulls = h.sent([&](auto& out) { h.client.pull_final(out); });
  ASSERT_EQ(pulls.size(), 2U);
  EXPECT_FALSE(body_of<wire::Pull>(pulls[0].message).exact) << "others may have gone on";
  h.answer_all(pulls, 9, 6);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.fault(), std::nullopt);
  EXPECT_EQ(h.weight(2, 0), 6.0F) << "into the half of its own clock";
}

TEST(ParameterClient, a_stop_gives_up_what_is_unanswered) {
  ClientHarness h;
  h.resume(0, 1);
  h.client.begin(Clock(0), 1);
  const Sent pushes = h.push({0, 1});
  h.client.stop();
  EXPECT_THAT(h.push({2}), IsEmpty()) << "backward may still deliver";
  h.answer_all(pushes, 1, 8);
  EXPECT_EQ(h.client.counters().ignored, 2U);
  EXPECT_EQ(h.weight(1, 0), 0.0F);
  EXPECT_EQ(h.client.clock(), Clock(0));
  EXPECT_THAT(h.reconnected(0), IsEmpty());
  const Sent last = h.finish(0, true);
  EXPECT_TRUE(body_of<wire::Finished>(last[0].message).group_stops);
  for (const auto& message : last) h.ack(message.to.value, ClientHarness::sequence_of(message));
  EXPECT_TRUE(h.client.finished());
}

TEST(ParameterClient, a_model_without_values_steps_all_the_same) {
  ClientHarness h({.tensors = {{"empty", {0}}}});
  h.start();
  h.versions(0, 1, {});
  EXPECT_FALSE(h.client.complete());
  EXPECT_THAT(h.versions(1, 2, {}), IsEmpty());
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.clock(), Clock(0));
  h.client.begin(Clock(0), 1);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.clock(), Clock(1));
}

TEST(ParameterClientDeathTest, misuse_is_a_bug_of_ours) {
  ClientHarness h;
  EXPECT_DEATH(h.client.begin(Clock(0), 1), "begins at");
  h.resume();
  EXPECT_DEATH(h.client.begin(Clock(1), 1), "clock 1 begins at 0");
  h.client.begin(Clock(0), 1);
  h.push({0});
  EXPECT_DEATH(h.push({0}), "slice 0 is pushed twice at clock 0");
  EXPECT_DEATH(h.finish(0), "finish 0 at 0");
}

}  // namespace
}  // namespace parley

// ParameterClient over broken connections: what it sends again, which answers it takes, and what ends it.
#include "tests/support/client_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
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

std::uint64_t sequence(const Sent& sent, std::size_t index = 0) { return ClientHarness::sequence_of(sent.at(index)); }

TEST(ParameterClientRepeat, what_is_unanswered_at_that_shard_is_pushed_again_with_a_new_sequence) {
  ClientHarness h;
  h.resume(0, 1);
  h.client.begin(Clock(0), 5);
  const Sent first = h.push({0, 1, 2});
  h.answer(2, sequence(first), 1, 4);
  const Sent again = h.reconnected(0);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].to, ShardId(0));
  EXPECT_THAT(ClientHarness::slices_of(again[0].message), ElementsAre(0))
      << "slice 2 is answered, slice 1 lives elsewhere";
  EXPECT_GT(sequence(again), sequence(first, 1));
  EXPECT_EQ(body_of<wire::PushPull>(again[0].message).samples, 5U);
  EXPECT_EQ(header_of(again[0].message).clock, Clock(0));
  EXPECT_EQ(h.client.counters().repeats, 1U);

  h.answer(0, sequence(first), 1, 100);
  EXPECT_EQ(h.client.counters().ignored, 1U);
  EXPECT_EQ(h.weight(1, 0), 0.0F) << "only the answer to the newest send is taken";
  h.answer(0, sequence(again), 1, 4);
  h.answer(0, sequence(again), 1, 100);
  EXPECT_EQ(h.weight(1, 0), 4.0F) << "and only once";
  h.answer(1, sequence(first, 1), 1, 4);
  EXPECT_TRUE(h.client.complete());
  EXPECT_EQ(h.client.counters().answers, 3U);
}

TEST(ParameterClientRepeat, slices_not_pushed_yet_are_not_repeated) {
  ClientHarness h;
  h.resume();
  EXPECT_THAT(h.reconnected(0), IsEmpty()) << "between two steps nothing is owed";
  h.client.begin(Clock(0), 1);
  EXPECT_THAT(h.reconnected(0), IsEmpty());
  h.push({2});
  EXPECT_THAT(ClientHarness::slices_of(h.reconnected(0).at(0).message), ElementsAre(2));
}

TEST(ParameterClientRepeat, presence_is_repeated_as_it_was) {
  ClientHarness h({.tensors = {{"a", {16}}, {"b", {16}}}, .slice_bytes = 128, .shards = 1});
  h.resume();
  h.client.begin(Clock(0), 1);
  h.push({0}, {{0, 1}});
  const Sent again = h.reconnected(0);
  const auto body = body_of<wire::PushPull>(again.at(0).message);
  EXPECT_EQ(body.slices.at(0).presence(), wire::Presence::some);
  EXPECT_THAT(body.present, ElementsAre(0, 1));
}

TEST(ParameterClientRepeat, an_answer_to_the_last_step_is_not_taken_for_this_one) {
  ClientHarness h({.shards = 1});
  h.resume(0, 1);
  h.client.begin(Clock(0), 1);
  const Sent first = h.push({0, 1, 2});
  h.answer_all(first, 1, 2);
  h.client.begin(Clock(1), 1);
  h.push({0, 1, 2});
  h.answer(0, sequence(first), 2, 100);
  EXPECT_FALSE(h.client.complete());
  EXPECT_EQ(h.client.counters().ignored, 1U);
  EXPECT_EQ(h.client.fault(), std::nullopt);
  EXPECT_EQ(h.weight(2, 0), 1.0F) << "the half of clock 2 still holds clock 0";
}

TEST(ParameterClientRepeat, asks_and_pulls_are_repeated) {
  ClientHarness h;
  const Sent asks = h.start();
  const Sent ask = h.reconnected(1);
  ASSERT_EQ(ask.size(), 1U);
  EXPECT_EQ(type_of(ask[0].message), wire::Body::Ask);
  h.versions(0, sequence(asks, 0), {{0, 3, 3}, {2, 3, 3}});
  EXPECT_THAT(h.versions(1, sequence(asks, 1), {{1, 2, 2}}), IsEmpty()) << "an old answer";
  EXPECT_THAT(h.reconnected(0), IsEmpty()) << "shard 0 has answered";
  const Sent pulls = h.versions(1, sequence(ask), {{1, 3, 3}});
  EXPECT_EQ(h.client.clock(), Clock(3));
  ASSERT_EQ(pulls.size(), 2U);

  h.answer(2, sequence(pulls, 0), 3, 1);
  const Sent again = h.reconnected(0);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_THAT(ClientHarness::slices_of(again[0].message), ElementsAre(0));
  EXPECT_TRUE(body_of<wire::Pull>(again[0].message).exact);
  h.answer(0, sequence(pulls, 0), 3, 100);
  EXPECT_EQ(h.weight(3, 0), 0.0F);
  h.answer(0, sequence(again), 3, 1);
  h.answer(1, sequence(pulls, 1), 3, 1);
  EXPECT_TRUE(h.client.complete());
}

TEST(ParameterClientRepeat, first_values_that_may_be_lost_are_asked_about) {
  ClientHarness h({.shards = 1});
  h.start();
  h.versions(0, 1, {}, false);
  const Sent ask = h.reconnected(0);
  ASSERT_EQ(ask.size(), 1U);
  EXPECT_EQ(type_of(ask[0].message), wire::Body::Ask);
  EXPECT_THAT(h.ack(0, 2), IsEmpty()) << "the Ack of the lost send";
  const Sent initial = h.versions(0, sequence(ask), {}, false);
  ASSERT_EQ(initial.size(), 1U);
  EXPECT_EQ(type_of(initial[0].message), wire::Body::Initialize);
}

TEST(ParameterClientRepeat, finished_is_repeated_until_it_is_acknowledged) {
  ClientHarness h;
  h.resume(2);
  const Sent last = h.finish(2, true);
  const Sent again = h.reconnected(1);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(header_of(again[0].message).clock, Clock(2));
  EXPECT_TRUE(body_of<wire::Finished>(again[0].message).group_stops);
  h.ack(0, sequence(last, 0));
  h.ack(1, sequence(last, 1));
  EXPECT_FALSE(h.client.finished());
  h.ack(1, sequence(again));
  EXPECT_TRUE(h.client.finished());
  EXPECT_THAT(h.reconnected(1), IsEmpty());
}

TEST(ParameterClientRepeat, the_final_pull_is_repeated) {
  ClientHarness h({.shards = 1});
  h.resume(2);
  h.ack(0, sequence(h.finish(2)));
  h.sent([&](auto& out) { h.client.pull_final(out); });
  const Sent again = h.reconnected(0);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_FALSE(body_of<wire::Pull>(again[0].message).exact);
  h.answer_all(again, 7, 3);
  EXPECT_TRUE(h.client.complete());
}

// Faults: what a shard says that cannot be ends the worker with one line.
class ParameterClientFaultTest : public testing::Test {
 protected:
  ParameterClientFaultTest() {
    h.resume(0, 1);
    h.client.begin(Clock(0), 1);
    pushes = h.push({0, 1, 2});
  }
  std::string fault() const { return h.client.fault().value_or("none"); }

  ClientHarness h{{.shards = 1}};
  Sent pushes;
};

TEST_F(ParameterClientFaultTest, another_version_than_that_of_the_next_clock) {
  h.answer(0, sequence(pushes), 2, 9);
  EXPECT_EQ(fault(), "slice 0: version 2 with 64 bytes came, 1 with 64 were expected");
  EXPECT_EQ(h.weight(1, 0), 0.0F) << "nothing was written";
}

TEST_F(ParameterClientFaultTest, weights_of_another_size) {
  wire::WeightsT body;
  body.slices.emplace_back(0, sequence(pushes), 1, 0, 0, 0, 60);
  std::vector<Frame> payload;
  payload.push_back(Frame::copy(std::vector<std::byte>(60)));
  h.receive(0, std::move(body), std::move(payload));
  EXPECT_EQ(fault(), "slice 0: version 1 with 60 bytes came, 1 with 64 were expected");
}

TEST_F(ParameterClientFaultTest, weights_without_their_frames) {
  wire::WeightsT body;
  body.slices.emplace_back(0, sequence(pushes), 1, 0, 0, 0, 64);
  h.receive(0, std::move(body));
  EXPECT_EQ(fault(), "server 0 sent weights of 1 slices in 0 frames");
}

TEST_F(ParameterClientFaultTest, weights_of_a_slice_that_is_none) {
  wire::WeightsT body;
  body.slices.emplace_back(3, sequence(pushes), 1, 0, 0, 0, 0);
  std::vector<Frame> payload(1);
  h.receive(0, std::move(body), std::move(payload));
  EXPECT_EQ(fault(), "weights of an unknown slice 3");
}

TEST_F(ParameterClientFaultTest, an_error_of_the_shard) {
  wire::ErrorT error;
  error.fault = wire::Fault::ended;
  error.text = "worker 3 lives on in incarnation 9, this is 7";
  h.receive(0, std::move(error));
  EXPECT_EQ(fault(), "server 0 answers: worker 3 lives on in incarnation 9, this is 7");
}

TEST_F(ParameterClientFaultTest, a_message_that_no_shard_sends) {
  h.receive(0, wire::HeartbeatT());
  EXPECT_EQ(fault(), "server 0 sent an unexpected Heartbeat");
}

TEST_F(ParameterClientFaultTest, another_job) {
  h.server_header.job = JobId(1);
  h.answer(0, sequence(pushes), 1, 9);
  EXPECT_EQ(fault(), "shard 0: belongs to job 0000000000000001, this is job 0000000000000005");
}

TEST_F(ParameterClientFaultTest, another_generation_is_no_fault_but_is_not_heard) {
  h.server_header.generation = Generation(2);
  h.answer(0, sequence(pushes), 1, 9);
  EXPECT_EQ(fault(), "none");
  EXPECT_EQ(h.weight(1, 0), 0.0F);
}

}  // namespace
}  // namespace parley

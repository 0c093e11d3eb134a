// Member: what a process tells the coordinator, what it repeats on a new connection, and when it gives up.
#include "common/control/member.h"

#include "tests/support/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace parley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::body_of;
using test::header_of;
using test::type_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr JobId kJob{5};

MemberOptions worker_options() {
  MemberOptions options;
  options.job = kJob;
  options.role = Role::worker;
  options.rank = Rank(3);
  options.coordinator = "tcp://head:4000";
  options.host = "node";
  options.pid = 42;
  options.life = 7;
  options.start_count = 2;
  options.tensors = {{"weight", {2, 3}}, {"bias", {3}}};
  options.slice_bytes = 64;
  options.samples = 60;
  options.config = {{"train.seed", "1"}};
  return options;
}

class MemberTest : public testing::Test {
 protected:
  using Sent = std::vector<Outgoing>;

  explicit MemberTest(const MemberOptions& options = worker_options()) : member(options) {}

  template <class Call>
  Sent sent(Call&& call) {
    Member::Out out;
    call(out);
    return out;
  }
  Sent start() {
    return sent([&](auto& out) { member.start(now, out); });
  }
  Sent reconnected() {
    return sent([&](auto& out) { member.reconnected(now, out); });
  }
  Sent tick(Duration later = {}) {
    now += later;
    return sent([&](auto& out) { member.tick(now, out); });
  }
  template <class Body>
  Sent receive(Body body) {
    const Outgoing message = compose(coordinator, std::move(body));
    return sent([&](auto& out) { member.receive(test::delivered(message), now, out); });
  }
  Sent welcome(std::uint32_t rank = 3, std::uint64_t incarnation = 9) {
    wire::WelcomeT body;
    body.rank = rank;
    body.incarnation = incarnation;
    return receive(std::move(body));
  }
  void join() {
    start();
    welcome();
  }
  static wire::MembershipT membership(std::uint64_t epoch, wire::Phase phase) {
    wire::MembershipT body;
    body.epoch = epoch;
    body.phase = phase;
    return body;
  }
  std::string end() const { return member.over() ? member.over()->reason : "not over"; }
  static std::vector<wire::Body> types(const Sent& messages) {
    std::vector<wire::Body> types;
    for (const Outgoing& message : messages) types.push_back(type_of(message));
    return types;
  }

  Header coordinator{kJob, Generation(1), Role::server, Rank(0), Incarnation(0), Clock(), Sequence(1)};
  Instant now{seconds(50)};
  Member member;
};

TEST_F(MemberTest, registers_with_all_that_the_coordinator_compares) {
  const Sent first = start();
  ASSERT_EQ(first.size(), 1U);
  const Header header = header_of(first[0]);
  EXPECT_EQ(header.rank, Rank(3));
  EXPECT_EQ(header.incarnation, Incarnation(0));
  const auto body = body_of<wire::Register>(first[0]);
  EXPECT_TRUE(body.has_rank);
  EXPECT_EQ(body.start_count, 2U);
  EXPECT_EQ(body.host, "node");
  EXPECT_EQ(body.pid, 42U);
  EXPECT_EQ(body.life, 7U);
  EXPECT_EQ(body.samples, 60U);
  ASSERT_EQ(body.config.size(), 1U);
  EXPECT_EQ(body.config[0]->key, "train.seed");
  ASSERT_NE(body.layout, nullptr);
  EXPECT_EQ(body.layout->tensors[0]->name, "weight") << "in order of registration";
  EXPECT_EQ(body.layout->fingerprint, Layout(worker_options().tensors, 64).fingerprint());
  EXPECT_FALSE(member.welcomed());
}

TEST(Member, a_server_tells_where_it_listens_and_may_be_handed_a_rank) {
  MemberOptions options;
  options.role = Role::server;
  options.endpoints = {"tcp://a:1", "tcp://a:2"};
  Member member(options);
  Member::Out out;
  member.start(Instant{}, out);
  const auto body = body_of<wire::Register>(out.at(0));
  EXPECT_FALSE(body.has_rank);
  EXPECT_THAT(body.endpoints, ElementsAre("tcp://a:1", "tcp://a:2"));
  EXPECT_EQ(body.layout, nullptr);
}

TEST_F(MemberTest, speaks_in_the_name_that_it_was_given) {
  start();
  const Sent first = welcome(4, 11);
  EXPECT_TRUE(member.welcomed());
  EXPECT_EQ(member.rank(), Rank(4));
  EXPECT_EQ(member.incarnation(), Incarnation(11));
  EXPECT_THAT(types(first), ElementsAre(wire::Body::Heartbeat));
  EXPECT_EQ(header_of(first[0]).rank, Rank(4));
  EXPECT_EQ(header_of(first[0]).incarnation, Incarnation(11));
  welcome(5, 12);
  EXPECT_EQ(member.rank(), Rank(4)) << "the first one counts";
}

TEST_F(MemberTest, sends_heartbeats_with_the_epoch_that_it_holds) {
  join();
  EXPECT_THAT(tick(milliseconds(499)), IsEmpty());
  EXPECT_EQ(member.next_deadline(), now + milliseconds(1));
  Sent beats = tick(milliseconds(1));
  ASSERT_THAT(beats, SizeIs(1));
  EXPECT_EQ(body_of<wire::Heartbeat>(beats[0]).epoch, 0U);
  receive(membership(6, wire::Phase::running));
  beats = tick(milliseconds(500));
  EXPECT_EQ(body_of<wire::Heartbeat>(beats.at(0)).epoch, 6U);
}

TEST_F(MemberTest, a_coordinator_that_does_not_answer_is_unreachable) {
  start();
  tick(milliseconds(29'900));
  EXPECT_EQ(end(), "not over");
  tick(milliseconds(100));
  EXPECT_EQ(end(), "the coordinator (server 0 at tcp://head:4000) is unreachable: no answer within 30.0 s");
  EXPECT_FALSE(member.over()->ok);
  EXPECT_EQ(member.next_deadline(), kNever);
  EXPECT_THAT(tick(seconds(1)), IsEmpty());
}

TEST_F(MemberTest, a_coordinator_that_falls_silent_is_lost) {
  join();
  tick(milliseconds(4900));
  receive(wire::HeartbeatT());
  tick(milliseconds(4900));
  EXPECT_EQ(end(), "not over");
  tick(milliseconds(100));
  EXPECT_EQ(end(), "the coordinator (server 0 at tcp://head:4000) is lost: silent for 5.0 s");
}

TEST_F(MemberTest, the_highest_epoch_wins) {
  join();
  auto newer = membership(5, wire::Phase::running);
  newer.stop_clock = 12;
  newer.shards = {"tcp://a:1"};
  newer.members.push_back(std::make_unique<wire::MemberStateT>());
  newer.members[0]->role = static_cast<std::uint8_t>(Role::worker);
  newer.members[0]->rank = 3;
  newer.members[0]->incarnation = 9;
  newer.members.push_back(std::make_unique<wire::MemberStateT>());  // a server
  receive(std::move(newer));
  auto old = membership(4, wire::Phase::closing);
  old.shards = {"tcp://b:1"};
  receive(std::move(old));
  receive(membership(5, wire::Phase::closing));
  const MembershipView& group = member.membership();
  EXPECT_EQ(group.epoch, 5U);
  EXPECT_EQ(group.phase, wire::Phase::running);
  EXPECT_EQ(group.stop_clock, Clock(12));
  EXPECT_THAT(group.shards, ElementsAre("tcp://a:1"));
  EXPECT_THAT(group.workers, ElementsAre(Pair(Rank(3), Incarnation(9))));
  receive(membership(6, wire::Phase::all_finished));
  EXPECT_EQ(group.phase, wire::Phase::all_finished);
  EXPECT_EQ(group.stop_clock, Clock(UINT64_MAX));
}

TEST_F(MemberTest, a_server_learns_the_model) {
  join();
  auto body = membership(1, wire::Phase::running);
  const auto tensors = worker_options().tensors;
  body.layout = pack_layout(tensors, 64, Layout(tensors, 64).fingerprint());
  receive(std::move(body));
  EXPECT_EQ(member.membership().tensors, tensors);
  EXPECT_EQ(member.membership().slice_bytes, 64U);
  body = membership(2, wire::Phase::running);
  body.layout = pack_layout(tensors, 64, 1);
  receive(std::move(body));
  EXPECT_EQ(
      end(),
      "the coordinator's layout: the layout's fingerprint does not match its tensors: another version of this program");
}

TEST_F(MemberTest, registers_again_on_a_new_connection_until_it_is_welcome) {
  EXPECT_THAT(reconnected(), IsEmpty()) << "the first connection is none that was lost";
  start();
  const Sent again = reconnected();
  EXPECT_THAT(types(again), ElementsAre(wire::Body::Register));
  EXPECT_EQ(body_of<wire::Register>(again[0]).life, 7U) << "the same life, so the same place";
  welcome();
  EXPECT_THAT(types(reconnected()), ElementsAre(wire::Body::Register, wire::Body::Heartbeat))
      << "which introduces the connection and shows the epoch that it holds";
}

TEST_F(MemberTest, says_again_what_a_lost_connection_may_have_swallowed) {
  join();
  sent([&](auto& out) { member.finished(Clock(8), out); });
  sent([&](auto& out) { member.request_stop(Clock(6), out); });
  sent([&](auto& out) { member.done({{"clock", 8}}, out); });
  const Sent again = reconnected();
  EXPECT_THAT(types(again), ElementsAre(wire::Body::Register, wire::Body::Heartbeat, wire::Body::Finished,
                                        wire::Body::RequestStop, wire::Body::Done));
  EXPECT_EQ(header_of(again[2]).clock, Clock(8));
  EXPECT_EQ(header_of(again[3]).clock, Clock(6));
  EXPECT_EQ(body_of<wire::Done>(again[4]).stats[0]->value, 8.0);
  EXPECT_LT(header_of(again[0]).sequence, header_of(again[1]).sequence);
}

TEST_F(MemberTest, a_block_is_asked_for_until_it_comes_and_taken_once) {
  join();
  const Sent first = sent([&](auto& out) { member.next_block(BlockRange{1, 20, 30}, out); });
  EXPECT_TRUE(body_of<wire::NextBlock>(first.at(0)).has_finished);
  EXPECT_EQ(body_of<wire::NextBlock>(first.at(0)).begin, 20U);
  const Sent again = reconnected();
  ASSERT_THAT(types(again), ElementsAre(wire::Body::Register, wire::Body::Heartbeat, wire::Body::NextBlock));
  EXPECT_EQ(body_of<wire::NextBlock>(again[2]).end, 30U);
  wire::BlockT block;
  block.answers = header_of(first[0]).sequence.value;
  block.begin = 5;
  block.end = 6;
  receive(wire::BlockT(block));
  EXPECT_EQ(member.take_block(), std::nullopt) << "the answer to the first send";
  block.answers = header_of(again[2]).sequence.value;
  receive(wire::BlockT(block));
  const auto taken = member.take_block();
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->begin, 5U);
  EXPECT_EQ(member.take_block(), std::nullopt);
  EXPECT_THAT(types(reconnected()), ElementsAre(wire::Body::Register, wire::Body::Heartbeat));

  const Sent last = sent([&](auto& out) { member.next_block(std::nullopt, out); });
  EXPECT_FALSE(body_of<wire::NextBlock>(last.at(0)).has_finished);
  block.answers = header_of(last[0]).sequence.value;
  block.exhausted = true;
  receive(wire::BlockT(block));
  const auto nothing = member.take_block();
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->has_value());
}

TEST_F(MemberTest, the_store_is_written_and_read) {
  join();
  const std::vector<std::byte> value{std::byte{1}, std::byte{0xff}};
  const Sent set = sent([&](auto& out) { member.store_set("a", value, out); });
  EXPECT_THAT(body_of<wire::StoreSet>(set.at(0)).value, ElementsAre(1, 255));
  sent([&](auto& out) { member.store_get("b", out); });
  EXPECT_THAT(types(reconnected()),
              ElementsAre(wire::Body::Register, wire::Body::Heartbeat, wire::Body::StoreSet, wire::Body::StoreGet));
  EXPECT_EQ(member.take_value("b"), std::nullopt);
  wire::StoreValueT found;
  found.key = "b";
  found.value = {3};
  receive(wire::StoreValueT(found));
  found.value = {4};
  receive(wire::StoreValueT(found));
  EXPECT_EQ(member.take_value("b"), (std::vector<std::byte>{std::byte{3}})) << "the answer to its get";
  EXPECT_EQ(member.take_value("b"), std::nullopt);
}

TEST_F(MemberTest, a_failure_is_reported_with_its_kind) {
  join();
  const Sent report = sent([&](auto& out) { member.fail(wire::Fault::non_finite, "clock 3", out); });
  EXPECT_EQ(body_of<wire::Error>(report.at(0)).fault, wire::Fault::non_finite);
  EXPECT_EQ(body_of<wire::Error>(report.at(0)).text, "clock 3");
}

TEST_F(MemberTest, a_shutdown_ends_it_with_everybodys_summary) {
  join();
  wire::ShutdownT body;
  body.ok = true;
  body.reason = "every worker has finished";
  body.processes.push_back(std::make_unique<wire::ProcessStatsT>());
  body.processes[0]->role = static_cast<std::uint8_t>(Role::worker);
  body.processes[0]->rank = 1;
  body.processes[0]->stats = pack_stats({{"clock", 3}});
  receive(std::move(body));
  ASSERT_TRUE(member.over().has_value());
  EXPECT_TRUE(member.over()->ok);
  EXPECT_EQ(member.over()->reason, "every worker has finished");
  ASSERT_THAT(member.over()->processes, SizeIs(1));
  EXPECT_EQ(member.over()->processes[0].rank, Rank(1));
  EXPECT_EQ(member.over()->processes[0].stats, (Stats{{"clock", 3}}));
  receive(wire::ErrorT());
  EXPECT_TRUE(member.over()->ok) << "said once";
  EXPECT_THAT(reconnected(), IsEmpty());
}

TEST_F(MemberTest, a_refusal_ends_it_with_the_coordinators_words) {
  start();
  wire::ErrorT error;
  error.text = "rank 3 already registered";
  receive(std::move(error));
  EXPECT_EQ(end(), "rank 3 already registered");
  EXPECT_FALSE(member.over()->ok);
}

TEST_F(MemberTest, another_job_at_that_address_ends_it) {
  start();
  coordinator.job = JobId(6);
  welcome();
  EXPECT_EQ(end(), "the coordinator at tcp://head:4000: belongs to job 0000000000000006, this is job 0000000000000005");
  EXPECT_FALSE(member.welcomed());
}

TEST_F(MemberTest, another_protocol_version_at_that_address_ends_it) {
  start();
  flatbuffers::FlatBufferBuilder builder;
  const auto body = wire::CreateHeartbeat(builder).Union();
  builder.Finish(wire::CreateMessage(builder, 2, kJob.value, 1, 0, 0, 0, 0, 1, wire::Body::Heartbeat, body),
                 wire::MessageIdentifier());
  const std::span bytes(reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize());
  Member::Out out;
  member.receive(*Incoming::parse(Frame::copy(bytes), {}), now, out);
  EXPECT_EQ(end(), "the coordinator at tcp://head:4000: protocol version 2 found, 1 expected");
}

}  // namespace
}  // namespace parley

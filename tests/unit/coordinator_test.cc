// Coordinator: who is let in, who is refused with which words, and what is said when a place stays empty.
#include "server/core/coordinator.h"

#include "tests/support/control_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace parley {
namespace {

using std::chrono::seconds;
using test::CoordinatorHarness;
using test::kControlModel;
using test::Process;
using test::RunningJob;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::Phase;

TEST(Coordinator, the_job_runs_when_everybody_is_here) {
  CoordinatorHarness h({.servers = 2, .workers = 1});
  Process server0 = h.server(0);
  Process server1 = h.server(1);
  Process worker = h.worker(0);
  EXPECT_EQ(h.coordinator.waiting_for(), "server 0, server 1, worker 0");
  ASSERT_TRUE(h.enter(server1));
  ASSERT_TRUE(h.enter(worker));
  EXPECT_EQ(h.coordinator.phase(), Phase::gathering);
  EXPECT_EQ(h.coordinator.waiting_for(), "server 0");
  EXPECT_THAT(h.sent<wire::Membership>(worker), IsEmpty());
  ASSERT_TRUE(h.enter(server0));
  EXPECT_EQ(h.coordinator.phase(), Phase::running);
  const auto told = h.only<wire::Membership>(worker);
  EXPECT_EQ(told.phase, Phase::running);
  EXPECT_EQ(told.epoch, 1U);
  EXPECT_EQ(told.stop_clock, UINT64_MAX);
  EXPECT_EQ(told.members.size(), 3U);
  EXPECT_THAT(told.shards, ElementsAre("tcp://node100:1", "tcp://node100:2", "tcp://node101:1", "tcp://node101:2"))
      << "in order of ShardId, not of arrival";
  EXPECT_EQ(told.layout, nullptr) << "workers know their model";
  const auto to_server = h.only<wire::Membership>(server1);
  ASSERT_NE(to_server.layout, nullptr);
  EXPECT_EQ(to_server.layout->tensors.size(), 2U);
  EXPECT_EQ(to_server.layout->slice_bytes, 64U);
  EXPECT_EQ(h.coordinator.waiting_for(), "worker 0");
}

TEST(Coordinator, hands_out_the_lowest_free_rank) {
  CoordinatorHarness h({.workers = 3});
  Process second = h.worker(1);
  ASSERT_TRUE(h.enter(second));
  for (const std::uint32_t expected : {0U, 2U}) {
    Process any = h.worker(7 + expected);
    any.rank.reset();
    ASSERT_TRUE(h.enter(any));
    EXPECT_EQ(any.given, Rank(expected));
    EXPECT_NE(any.incarnation, Incarnation(0));
  }
  Process late = h.worker(30);
  late.rank.reset();
  EXPECT_FALSE(h.enter(late));
  EXPECT_EQ(h.only<wire::Error>(late).text, "all 3 workers of this job are registered already");
}

TEST(Coordinator, a_rank_has_one_holder) {
  CoordinatorHarness h({.workers = 2});
  Process first = h.worker(1);
  ASSERT_TRUE(h.enter(first));
  Process second = h.worker(1);
  second.life = 999;
  second.route = Route(9);
  EXPECT_FALSE(h.enter(second));
  const auto error = h.only<wire::Error>(second);
  EXPECT_EQ(error.fault, wire::Fault::refused);
  EXPECT_EQ(error.text, "rank 1 already registered: worker 1 lives on node201 as pid 201");
  EXPECT_FALSE(h.coordinator.over().has_value()) << "the one who is here is not disturbed";
  Process beyond = h.worker(2);
  EXPECT_FALSE(h.enter(beyond));
  EXPECT_EQ(h.only<wire::Error>(beyond).text, "worker 2: this job has 2 workers (ranks 0 to 1)");
}

TEST(Coordinator, one_process_that_registers_twice_gets_one_place) {
  RunningJob job;
  const Incarnation incarnation = job.worker1.incarnation;
  job.worker1.route = Route(33);
  ASSERT_TRUE(job.enter(job.worker1));
  EXPECT_EQ(job.worker1.incarnation, incarnation);
  EXPECT_EQ(job.only<wire::Membership>(job.worker1).phase, Phase::running) << "it may have missed that";
  job.out.clear();
  job.send(job.worker0, wire::RequestStopT(), Clock(3));
  EXPECT_EQ(job.only<wire::Membership>(job.worker1).stop_clock, 3U) << "to the new connection";
}

TEST(Coordinator, nobody_joins_a_running_job) {
  RunningJob job;
  Process late = job.worker(0);
  late.life = 77;
  late.route = Route(77);
  EXPECT_FALSE(job.enter(late));
  EXPECT_THAT(job.only<wire::Error>(late).text, HasSubstr("rank 0 already registered"));
  late.rank.reset();
  job.out.clear();
  EXPECT_FALSE(job.enter(late));
  EXPECT_EQ(job.only<wire::Error>(late).text, "all 2 workers of this job are registered already");
  EXPECT_FALSE(job.coordinator.over().has_value());
}

TEST(Coordinator, a_stranger_is_told_that_it_does_not_take_part) {
  RunningJob job;
  Process stranger = job.worker(1);
  stranger.route = Route(9);
  stranger.incarnation = Incarnation(17);
  job.send(stranger, wire::HeartbeatT());
  const auto error = job.only<wire::Error>(stranger);
  EXPECT_EQ(error.fault, wire::Fault::ended);
  EXPECT_EQ(error.text, "worker 1 with incarnation 17 does not take part in this job");
}

TEST(Coordinator, another_job_is_refused) {
  CoordinatorHarness h;
  Header header = h.worker(0).header();
  header.job = JobId(0xab);
  h.coordinator.receive(Route(1), test::delivered(compose(header, wire::HeartbeatT())), h.now, h.out);
  ASSERT_EQ(h.out.sends().size(), 1U);
  EXPECT_EQ(test::body_of<wire::Error>(h.out.sends()[0].message).text,
            "belongs to job 00000000000000ab, this is job 0000000000000005");
}

TEST(Coordinator, another_protocol_version_is_refused) {
  CoordinatorHarness h;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = wire::CreateHeartbeat(builder).Union();
  builder.Finish(
      wire::CreateMessage(builder, 2, test::kControlJob.value, 1, 1, 0, 0, 0, 1, wire::Body::Heartbeat, body),
      wire::MessageIdentifier());
  const std::span bytes(reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize());
  h.coordinator.receive(Route(1), *Incoming::parse(Frame::copy(bytes), {}), h.now, h.out);
  ASSERT_EQ(h.out.sends().size(), 1U);
  const auto error = test::body_of<wire::Error>(h.out.sends()[0].message);
  EXPECT_EQ(error.fault, wire::Fault::protocol);
  EXPECT_EQ(error.text, "protocol version 2 found, 1 expected");
}

TEST(Coordinator, a_different_configuration_ends_the_job_on_both_sides) {
  CoordinatorHarness h({.workers = 2});
  Process server = h.server(0);
  Process good = h.worker(0);
  Process bad = h.worker(1);
  ASSERT_TRUE(h.enter(server));
  ASSERT_TRUE(h.enter(good));
  auto body = h.registration(bad);
  body.config = pack_entries({{"train.seed", "2"}});
  EXPECT_FALSE(h.enter(bad, std::move(body)));
  const std::string text = "config key 'train.seed': server 0 has 1, worker 1 has 2";
  EXPECT_EQ(h.only<wire::Error>(bad).text, text);
  EXPECT_EQ(h.only<wire::Shutdown>(good).reason, text);
  EXPECT_EQ(h.only<wire::Shutdown>(server).reason, text);
  EXPECT_FALSE(h.only<wire::Shutdown>(good).ok);
  ASSERT_TRUE(h.coordinator.over().has_value());
  EXPECT_EQ(h.coordinator.over()->reason, text);
}

TEST(Coordinator, a_different_model_or_data_set_ends_the_job) {
  auto second_worker = [](auto change) -> std::string {
    CoordinatorHarness h({.workers = 2});
    Process good = h.worker(1);
    Process bad = h.worker(0);
    EXPECT_TRUE(h.enter(good));
    auto body = h.registration(bad);
    change(body);
    EXPECT_FALSE(h.enter(bad, std::move(body)));
    EXPECT_EQ(h.only<wire::Shutdown>(good).reason, h.only<wire::Error>(bad).text);
    return h.only<wire::Error>(bad).text;
  };
  auto with_layout = [](std::vector<TensorSpec> tensors, std::uint64_t slice_bytes) {
    return [=](wire::RegisterT& body) {
      body.layout = pack_layout(tensors, slice_bytes, Layout(tensors, slice_bytes).fingerprint());
    };
  };
  EXPECT_EQ(second_worker(with_layout({{"weight", {2, 3}}, {"bias", {4}}}, 64)),
            "tensor 'bias': worker 1 has float32[3], worker 0 has float32[4]");
  EXPECT_EQ(second_worker(with_layout(kControlModel, 128)), "slices: worker 1 has 64 bytes, worker 0 has 128");
  EXPECT_EQ(second_worker([](wire::RegisterT& body) { body.samples = 61; }),
            "training set: worker 1 has 60 samples, worker 0 has 61");
  EXPECT_EQ(second_worker([](wire::RegisterT& body) { body.layout.reset(); }), "worker 0 brings no model");
  EXPECT_EQ(second_worker([](wire::RegisterT& body) { body.layout->tensors[0]->type = 9; }),
            "worker 0: tensor 'weight' has element type 9, this version knows float32");
}

TEST(Coordinator, who_is_missing_at_the_deadline_is_named) {
  CoordinatorHarness h({.workers = 3, .start_timeout = seconds(20)});
  Process server = h.server(0);
  Process worker = h.worker(1);
  ASSERT_TRUE(h.enter(server));
  ASSERT_TRUE(h.enter(worker));
  Process again = h.worker(1);
  again.life = 99;
  again.route = Route(9);
  EXPECT_FALSE(h.enter(again));
  h.pass(seconds(20), {&server, &worker});
  EXPECT_FALSE(h.coordinator.over().has_value());
  h.tick();
  ASSERT_TRUE(h.coordinator.over().has_value());
  EXPECT_EQ(h.coordinator.over()->reason,
            "start: worker 0, worker 2 missing after 20.0 s (worker 1 (node9, pid 99) was refused: rank 1 already "
            "registered: "
            "worker 1 lives on node201 as pid 201)");
  EXPECT_EQ(h.only<wire::Shutdown>(server).reason, h.coordinator.over()->reason);
}

TEST(Coordinator, a_place_is_free_again_when_its_holder_is_lost_before_the_start) {
  CoordinatorHarness h({.workers = 1});
  Process worker = h.worker(0);
  ASSERT_TRUE(h.enter(worker));
  h.coordinator.unreachable(worker.route, h.now);
  h.now += seconds(2);
  h.tick();
  EXPECT_EQ(h.coordinator.roster_size(), 0U);
  EXPECT_FALSE(h.coordinator.over().has_value());
  Process next = h.worker(0);
  next.life = 55;
  auto body = h.registration(next);
  body.samples = 10;  // nobody is left to disagree
  h.out.clear();
  ASSERT_TRUE(h.enter(next, std::move(body)));
  EXPECT_GT(next.incarnation, worker.incarnation);
}

// The model to compare with outlives the worker that brought it, as long as another worker has it.
TEST(Coordinator, a_model_is_compared_with_even_when_its_bringer_is_lost) {
  CoordinatorHarness h({.workers = 3});
  Process first = h.worker(0);
  Process second = h.worker(1);
  ASSERT_TRUE(h.enter(first));
  ASSERT_TRUE(h.enter(second));
  h.coordinator.unreachable(first.route, h.now);
  h.pass(seconds(2), {&second});
  EXPECT_EQ(h.coordinator.roster_size(), 1U);
  Process next = h.worker(0);
  next.life = 55;
  auto body = h.registration(next);
  body.samples = 10;
  EXPECT_FALSE(h.enter(next, std::move(body)));
  EXPECT_EQ(h.only<wire::Error>(next).text, "training set: worker 1 has 60 samples, worker 0 has 10");
}

}  // namespace
}  // namespace parley

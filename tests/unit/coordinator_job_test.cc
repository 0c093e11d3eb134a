// Coordinator while the job runs: lives, the stop clock, the order of the end, blocks and the rendezvous store.
#include "tests/support/control_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace parley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::CoordinatorHarness;
using test::Process;
using test::RunningJob;
using testing::IsEmpty;
using testing::SizeIs;
using wire::Phase;

std::string end_of(const CoordinatorHarness& h) {
  return h.coordinator.over() ? h.coordinator.over()->reason : "not over";
}

TEST(CoordinatorJob, silence_ends_the_job_and_names_who_is_silent) {
  RunningJob job;
  job.pass(milliseconds(4500), {&job.server0, &job.worker0});
  EXPECT_EQ(end_of(job), "not over");
  job.pass(seconds(1), {&job.server0, &job.worker0});
  EXPECT_EQ(end_of(job), "worker 1 (node201, pid 201) is lost: silent for 5.0 s");
  EXPECT_FALSE(job.coordinator.over()->ok);
}

TEST(CoordinatorJob, a_silent_server_is_named_as_well) {
  RunningJob job;
  job.pass(seconds(6), {&job.worker0, &job.worker1});
  EXPECT_EQ(end_of(job), "server 0 (node100, pid 100) is lost: silent for 5.0 s");
}

TEST(CoordinatorJob, a_closed_connection_ends_the_job_unless_a_new_one_speaks) {
  RunningJob job;
  job.coordinator.unreachable(job.worker1.route, job.now);
  job.now += milliseconds(900);
  job.move(job.worker1, Route(33));
  job.pass(seconds(3), job.everybody());
  EXPECT_EQ(end_of(job), "not over");

  job.coordinator.unreachable(Route(201), job.now);  // the old one: nobody's any more
  job.pass(seconds(3), {&job.server0, &job.worker0, &job.worker1});
  EXPECT_EQ(end_of(job), "not over");

  job.coordinator.unreachable(Route(33), job.now);
  job.now += milliseconds(900);
  job.tick();
  EXPECT_EQ(end_of(job), "not over");
  job.now += milliseconds(100);
  job.out.clear();
  job.tick();
  EXPECT_EQ(end_of(job), "worker 1 (node201, pid 201) is lost: its connection closed");
  EXPECT_EQ(job.only<wire::Shutdown>(job.worker0).reason, end_of(job));
}

TEST(CoordinatorJob, everybody_hears_heartbeats) {
  RunningJob job;
  job.tick();
  for (const Process* process : job.everybody()) EXPECT_THAT(job.sent<wire::Heartbeat>(*process), SizeIs(1));
  job.out.clear();
  job.tick();
  EXPECT_TRUE(job.out.empty()) << "not more often than the interval";
  EXPECT_EQ(job.coordinator.next_deadline(), job.now + milliseconds(500));
  job.now += milliseconds(500);
  job.tick();
  EXPECT_THAT(job.out.sends(), SizeIs(3));
}

TEST(CoordinatorJob, a_membership_that_was_missed_is_repeated) {
  RunningJob job;
  wire::HeartbeatT heartbeat;
  job.send(job.worker0, heartbeat);
  EXPECT_EQ(job.only<wire::Membership>(job.worker0).epoch, 1U);
  job.out.clear();
  heartbeat.epoch = 1;
  job.send(job.worker0, heartbeat);
  EXPECT_TRUE(job.out.empty()) << "it holds the newest";
}

TEST(CoordinatorJob, ends_in_order_finished_done_closing) {
  RunningJob job;
  job.send(job.worker0, wire::FinishedT(), Clock(10));
  EXPECT_EQ(job.coordinator.phase(), Phase::running);
  EXPECT_EQ(job.coordinator.waiting_for(), "worker 1");
  job.send(job.worker0, wire::FinishedT(), Clock(10));  // a repeat
  EXPECT_TRUE(job.out.empty());
  job.send(job.worker1, wire::FinishedT(), Clock(8));
  EXPECT_EQ(job.coordinator.phase(), Phase::all_finished);
  EXPECT_EQ(job.only<wire::Membership>(job.worker0).phase, Phase::all_finished);
  EXPECT_TRUE(job.only<wire::Membership>(job.server0).members[1]->finished);

  job.out.clear();
  wire::DoneT done;
  done.stats = pack_stats({{"clock", 10}});
  job.send(job.worker0, done);
  EXPECT_EQ(job.coordinator.waiting_for(), "worker 1");
  job.send(job.worker1, wire::DoneT());
  EXPECT_EQ(job.coordinator.phase(), Phase::closing);
  EXPECT_EQ(job.only<wire::Membership>(job.server0).phase, Phase::closing);
  EXPECT_EQ(job.coordinator.waiting_for(), "server 0");
  EXPECT_EQ(end_of(job), "not over");

  job.out.clear();
  job.send(job.server0, wire::DoneT());
  ASSERT_TRUE(job.coordinator.over().has_value());
  EXPECT_TRUE(job.coordinator.over()->ok);
  for (const Process* process : job.everybody()) {
    const auto shutdown = job.only<wire::Shutdown>(*process);
    EXPECT_TRUE(shutdown.ok);
    ASSERT_EQ(shutdown.processes.size(), 3U);
    EXPECT_EQ(shutdown.processes[1]->role, static_cast<std::uint8_t>(Role::worker));
    ASSERT_EQ(shutdown.processes[1]->stats.size(), 1U);
    EXPECT_EQ(shutdown.processes[1]->stats[0]->value, 10.0);
  }
  EXPECT_EQ(job.coordinator.next_deadline(), kNever);
  job.out.clear();
  job.send(job.worker0, wire::HeartbeatT());
  EXPECT_TRUE(job.only<wire::Shutdown>(job.worker0).ok) << "again for whom it did not reach";
}

TEST(CoordinatorJob, last_words_are_not_waited_for_for_ever) {
  RunningJob job;
  for (Process* worker : {&job.worker0, &job.worker1}) job.send(*worker, wire::FinishedT());
  for (Process* worker : {&job.worker0, &job.worker1}) job.send(*worker, wire::DoneT());
  job.pass(seconds(10), job.everybody());
  EXPECT_EQ(end_of(job), "not over");
  job.tick();
  EXPECT_EQ(end_of(job), "server 0 did not end within 10.0 s");
}

TEST(CoordinatorJob, the_lowest_stop_clock_is_announced) {
  RunningJob job;
  job.send(job.worker1, wire::RequestStopT(), Clock(7));
  for (const Process* process : job.everybody()) EXPECT_EQ(job.only<wire::Membership>(*process).stop_clock, 7U);
  EXPECT_EQ(job.only<wire::Membership>(job.worker0).epoch, 2U);
  job.out.clear();
  job.send(job.worker0, wire::RequestStopT(), Clock(9));
  job.send(job.worker0, wire::RequestStopT(), Clock(7));
  EXPECT_TRUE(job.out.empty());
  job.send(job.worker0, wire::RequestStopT(), Clock(5));
  EXPECT_EQ(job.only<wire::Membership>(job.worker1).stop_clock, 5U);
}

TEST(CoordinatorJob, a_process_that_cannot_go_on_ends_the_job_with_its_reason) {
  RunningJob job;
  wire::ErrorT error;
  error.text = "clock 3: gradient of worker 1 is not finite";
  job.send(job.server0, error);
  EXPECT_EQ(end_of(job), "server 0: clock 3: gradient of worker 1 is not finite");
  EXPECT_FALSE(job.only<wire::Shutdown>(job.worker1).ok);
}

TEST(CoordinatorJob, blocks_are_handed_out_by_demand) {
  RunningJob job({.blocks = BlockDispenserOptions{.block_samples = 25, .epochs = 1}});
  job.send(job.worker0, wire::NextBlockT());
  auto block = job.only<wire::Block>(job.worker0);
  EXPECT_EQ(block.answers, job.worker0.sequence);
  EXPECT_EQ(block.begin, 0U);
  EXPECT_EQ(block.end, 25U);
  job.send(job.worker1, wire::NextBlockT());
  EXPECT_EQ(job.only<wire::Block>(job.worker1).begin, 25U);
  job.out.clear();
  job.send(job.worker0, wire::NextBlockT());
  EXPECT_EQ(job.only<wire::Block>(job.worker0).begin, 0U) << "a repeat is given what it holds";
  job.out.clear();
  wire::NextBlockT next;
  next.has_finished = true;
  next.end = 25;
  job.send(job.worker0, next);
  block = job.only<wire::Block>(job.worker0);
  EXPECT_EQ(block.begin, 50U);
  EXPECT_EQ(block.end, 60U) << "the training set has 60 samples";
  job.out.clear();
  next.begin = 50;
  next.end = 60;
  job.send(job.worker0, next);
  EXPECT_TRUE(job.only<wire::Block>(job.worker0).exhausted);
}

TEST(CoordinatorJob, a_stranger_who_knows_rank_and_incarnation_is_not_heard) {
  RunningJob job;
  Process stranger = job.worker1;
  stranger.route = Route(44);
  wire::ErrorT error;
  error.text = "a stranger is unhappy";
  job.send(stranger, error);
  job.send(stranger, wire::FinishedT());
  EXPECT_EQ(end_of(job), "not over");
  // It cannot keep a silent worker alive either.
  job.pass(seconds(6), {&job.server0, &job.worker0, &stranger});
  EXPECT_EQ(end_of(job), "worker 1 (node201, pid 201) is lost: silent for 5.0 s");
}

TEST(CoordinatorJob, a_registration_that_comes_late_from_an_old_connection_changes_nothing) {
  RunningJob job;
  Process late = job.worker1;
  job.worker1.sequence += 10;
  job.move(job.worker1, Route(33));
  job.move(late, Route(201));
  job.pass(seconds(6), job.everybody());
  EXPECT_EQ(end_of(job), "not over");
}

TEST(CoordinatorJob, a_store_get_waits_for_its_set) {
  RunningJob job;
  wire::StoreGetT get;
  get.key = "root";
  job.send(job.worker1, get);
  EXPECT_TRUE(job.out.empty());
  job.move(job.worker1, Route(33));
  job.out.clear();
  wire::StoreSetT set;
  set.key = "root";
  set.value = {1, 2, 3};
  job.send(job.worker0, set);
  EXPECT_EQ(job.only<wire::StoreValue>(job.worker1).value, (std::vector<std::uint8_t>{1, 2, 3}))
      << "on its new connection";
  EXPECT_THAT(job.sent<wire::StoreValue>(job.worker0), IsEmpty());
  job.send(job.worker0, get);
  EXPECT_EQ(job.only<wire::StoreValue>(job.worker0).key, "root");
  set.value.assign((1 << 20) + 1, 0);
  job.send(job.worker0, set);
  EXPECT_EQ(end_of(job), "the rendezvous store is full at key 'root'");
}

}  // namespace
}  // namespace parley

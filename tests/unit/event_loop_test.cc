#include "common/transport/event_loop.h"

#include "common/transport/mailbox.h"
#include "common/transport/monotonic_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

namespace parley {
namespace {

using namespace std::chrono_literals;

Outgoing bytes(std::size_t size) { return {Frame::copy(std::vector<std::byte>(size)), {}}; }

TEST(Poller, ReturnsAtTheDeadlineAndNotBefore) {
  const Wakeup wakeup;
  Poller poller;
  const Poller::Token token = poller.watch(wakeup);
  const Instant deadline = monotonic_now() + 5ms;
  poller.wait(deadline);
  EXPECT_GE(monotonic_now(), deadline);
  EXPECT_FALSE(poller.ready(token));
}

TEST(Poller, ReturnsAtOnceForADeadlineInThePast) {
  Poller poller;
  poller.wait(Instant::min());
  SUCCEED();
}

TEST(Poller, SeesAWakeupUntilItIsCleared) {
  Wakeup wakeup;
  Poller poller;
  const Poller::Token token = poller.watch(wakeup);
  wakeup.notify();
  wakeup.notify();
  for (int i = 0; i < 2; ++i) {
    poller.wait(kNever);
    EXPECT_TRUE(poller.ready(token));
  }
  wakeup.clear();
  poller.wait(Instant::min());
  EXPECT_FALSE(poller.ready(token));
}

TEST(Poller, IsEndedByAnotherThread) {
  Wakeup wakeup;
  Poller poller;
  const Poller::Token token = poller.watch(wakeup);
  std::thread other([&] { wakeup.notify(); });
  poller.wait(kNever);
  EXPECT_TRUE(poller.ready(token));
  other.join();
}

TEST(Poller, IsNotEndedBySignals) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  Poller poller;
  std::atomic<bool> done{false};
  std::atomic<bool> early{false};
  std::thread waiter([&] {
    const Instant deadline = monotonic_now() + 100ms;
    poller.wait(deadline);
    early = monotonic_now() < deadline;
    done = true;
  });
  while (!done) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  waiter.join();
  EXPECT_FALSE(early);
  sigaction(SIGUSR1, &before, nullptr);
}

// What one turn leaves in a socket is seen by the next wait, though nothing new arrives.
TEST(Poller, SeesWhatATurnLeft) {
  constexpr int kMessages = 3 * kMessagesPerTurn;
  Context context;
  RouterSocket router(context);
  DealerSocket dealer(context, router.bind({"127.0.0.1", 0}));
  Poller poller;
  const Poller::Token at_router = poller.watch(router);
  poller.watch(dealer);
  const Instant limit = monotonic_now() + 30s;
  int received = 0;
  int turns = 0;
  while (received < kMessages && monotonic_now() < limit) {
    poller.wait(limit);
    while (auto event = dealer.next_event(monotonic_now())) {
      ASSERT_EQ(event, ConnectionEvent::connected);
      for (int i = 0; i < kMessages; ++i) ASSERT_EQ(dealer.send(bytes(10)), SendResult::sent);
    }
    if (!poller.ready(at_router)) continue;
    ++turns;
    for (int i = 0; i < kMessagesPerTurn && router.receive(); ++i) ++received;
  }
  EXPECT_EQ(received, kMessages);
  EXPECT_GE(turns, 3);
}

}  // namespace
}  // namespace parley

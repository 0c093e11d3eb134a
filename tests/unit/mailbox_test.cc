#include "common/transport/mailbox.h"

#include "common/transport/event_loop.h"
#include "common/transport/monotonic_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace parley {
namespace {

TEST(Mailbox, GivesValuesOutInOrder) {
  Mailbox<int> mailbox(8);
  std::vector<int> values{99};
  mailbox.drain(values);
  EXPECT_TRUE(values.empty());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(mailbox.push(i));
  mailbox.drain(values);
  EXPECT_EQ(values, (std::vector<int>{0, 1, 2, 3, 4}));
  ASSERT_TRUE(mailbox.push(7));
  mailbox.drain(values);
  EXPECT_EQ(values, (std::vector<int>{7}));
}

TEST(Mailbox, RefusesWhatIsBeyondItsCapacity) {
  Mailbox<std::unique_ptr<int>> mailbox(2);
  EXPECT_TRUE(mailbox.push(std::make_unique<int>(1)));
  EXPECT_TRUE(mailbox.push(std::make_unique<int>(2)));
  EXPECT_FALSE(mailbox.push(std::make_unique<int>(3)));
  std::vector<std::unique_ptr<int>> values;
  mailbox.drain(values);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(*values[1], 2);
  EXPECT_TRUE(mailbox.push(std::make_unique<int>(4)));
}

TEST(Mailbox, KeepsItsMemory) {
  Mailbox<int> mailbox(4);
  std::vector<int> values;
  mailbox.drain(values);
  const int* memory = values.data();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(mailbox.push(round));
    mailbox.drain(values);
    ASSERT_TRUE(mailbox.push(round));
    mailbox.drain(values);
    EXPECT_EQ(values.data(), memory);
  }
}

// The invariant that matters: the owner, which sleeps whenever nothing is ready, sees every value of every producer.
TEST(Mailbox, WakesItsOwnerForEveryValue) {
  constexpr int kProducers = 3;
  constexpr int kValues = 20'000;
  Mailbox<std::pair<int, int>> mailbox(64);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p)
    producers.emplace_back([&mailbox, p] {
      for (int i = 0; i < kValues; ++i)
        while (!mailbox.push({p, i})) std::this_thread::yield();
    });

  Poller poller;
  const Poller::Token token = poller.watch(mailbox.wakeup());
  std::vector<int> next(kProducers, 0);
  std::vector<std::pair<int, int>> values;
  const Instant deadline = monotonic_now() + std::chrono::seconds(60);
  for (int count = 0; count < kProducers * kValues && monotonic_now() < deadline;) {
    poller.wait(deadline);
    if (!poller.ready(token)) continue;
    mailbox.drain(values);
    for (const auto& [producer, value] : values) {
      ASSERT_EQ(value, next[producer]);
      ++next[producer];
      ++count;
    }
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(next, std::vector<int>(kProducers, kValues));
}

}  // namespace
}  // namespace parley

#include "worker/sync/task_thread.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace parley {
namespace {

TEST(TaskThread, RunsTasksElsewhereAndHandsOverWhatTheyWrote) {
  TaskThread thread;
  int value = 0;
  std::thread::id runner;
  for (int i = 1; i <= 100; ++i) {
    thread.post([&] {
      ++value;
      runner = std::this_thread::get_id();
    });
    thread.wait();
    EXPECT_EQ(value, i);
  }
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(TaskThread, HandsBackAnExceptionOnceAndGoesOn) {
  TaskThread thread;
  thread.wait();
  thread.post([] { throw std::runtime_error("no"); });
  EXPECT_THROW(thread.wait(), std::runtime_error);
  thread.wait();
  bool ran = false;
  thread.post([&] { ran = true; });
  thread.wait();
  EXPECT_TRUE(ran);
}

TEST(TaskThread, AnExceptionThatNobodyWaitedForIsDropped) {
  TaskThread thread;
  thread.post([] { throw std::runtime_error("no"); });
}

}  // namespace
}  // namespace parley

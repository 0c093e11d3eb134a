// A thread that runs one task at a time for its owner, and hands back what the task threw.
//
// Owned and called by one thread (the trainer). Everything that the owner wrote before post() is visible to the task,
// and everything that the task wrote to the owner after wait(). The destructor waits for a running task to end; whoever
// can make it end sooner does so before.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace parley {

class TaskThread {
 public:
  TaskThread();
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Starts the task; the one before it must have been waited for.
  void post(std::function<void()> task);
  // Returns when the posted task has ended; rethrows its exception, once. At once where none was posted.
  void wait();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;  // empty: none running
  std::exception_ptr error_;
  bool posted_ = false;  // and not waited for; the owner's
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace parley

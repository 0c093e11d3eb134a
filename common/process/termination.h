// SIGINT and SIGTERM of this process. The first one ends the job in an orderly way, through `end`; should that not get
// far within the grace time, or should a second one come, the process ends at once. Exit status 128 + signal in every
// case.
//
// Made by main before any other thread, so that all of them inherit the blocked signals and only the watcher takes
// them.
#pragma once

#include "common/base/instant.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace parley {

class Termination {
 public:
  explicit Termination(Duration grace);
  // Stops watching; signals stay blocked, so that one that comes while main returns changes nothing.
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // What the first signal calls, on the watcher's thread, with the signal's name; null: the process ends at once.
  void on_signal(std::function<void(const char* name)> end);
  // Runs a program's life. After a signal a RunError is only its consequence: it is logged, and the status is
  // 128 + signal; without one it is thrown on. Returns the exit status.
  int run(const std::function<void()>& life);

 private:
  void watch();

  const Duration grace_;
  std::mutex mutex_;
  std::function<void(const char*)> end_;  // guarded by mutex_
  std::atomic<int> signal_{0};
  std::atomic<bool> closing_{false};
  std::thread watcher_;
};

}  // namespace parley

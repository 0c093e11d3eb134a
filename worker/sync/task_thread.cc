#include "worker/sync/task_thread.h"

#include "common/base/log.h"

#include <utility>

namespace parley {

TaskThread::TaskThread() : thread_([this] { loop(); }) {}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TaskThread::post(std::function<void()> task) {
  PARLEY_CHECK(!posted_, "the task before was not waited for");
  posted_ = true;
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_all();
}

void TaskThread::wait() {
  posted_ = false;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !task_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void TaskThread::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return task_ || stopping_; });
    if (!task_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      task_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = std::move(error);
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace parley

// A bounded queue from any of our threads to one: commands to a loop, small values that move. The owner's Poller
// watches wakeup(). A lock and two vectors are enough: a push is tens of nanoseconds and the gradient bytes themselves
// stay where they are.
//
// Thread rule: push() from any thread, drain() by the owner alone. Values come out in the order of the pushes.
// Invariant: whenever the queue is not empty, the wakeup is set or a drain() is under way.
#pragma once

#include "common/transport/wakeup.h"

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace parley {

template <class T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) { queue_.reserve(capacity); }

  // False, and `value` is lost, where `capacity` values wait already. Each user states what bounds its pushes, and
  // checks.
  [[nodiscard]] bool push(T value) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() == capacity_) return false;
      first = queue_.empty();
      queue_.push_back(std::move(value));
    }
    if (first) wakeup_.notify();
    return true;
  }

  // Replaces the contents of `values` by all that waits; its old memory serves the next pushes.
  void drain(std::vector<T>& values) {
    values.clear();
    values.reserve(capacity_);
    // Cleared first: a push after this line notifies again, at worst for nothing.
    wakeup_.clear();
    const std::lock_guard lock(mutex_);
    queue_.swap(values);
  }

  const Wakeup& wakeup() const { return wakeup_; }

 private:
  const std::size_t capacity_;
  Wakeup wakeup_;
  std::mutex mutex_;
  std::vector<T> queue_;  // guarded by mutex_
};

}  // namespace parley

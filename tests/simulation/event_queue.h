// Virtual time: events in order of (instant, insertion). One thread, no wall clock; the same seed gives the same run.
#pragma once

#include "common/base/instant.h"

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace parley::simulation {

class EventQueue {
 public:
  Instant now() const { return now_; }

  void at(Instant when, std::function<void()> action) {
    events_.emplace(std::pair(when < now_ ? now_ : when, next_++), std::move(action));
  }
  void after(Duration delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

  // Runs the next event; false where there is none.
  bool step() {
    if (events_.empty()) return false;
    auto node = events_.extract(events_.begin());
    now_ = node.key().first;
    ++steps_;
    node.mapped()();
    return true;
  }
  std::uint64_t steps() const { return steps_; }

 private:
  Instant now_{};
  std::uint64_t next_ = 0;
  std::uint64_t steps_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace parley::simulation

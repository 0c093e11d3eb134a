// The workers as one shard knows them: which incarnation of each is the living one, and from which clock on a worker
// pushes no more. A plain value owned by the shard.
#pragma once

#include "common/base/log.h"
#include "common/base/types.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace parley {

inline constexpr Clock kEndOfClocks{std::numeric_limits<std::uint64_t>::max()};

class WorkerGroup {
 public:
  explicit WorkerGroup(std::uint32_t workers) : members_(workers) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  bool contains(Rank rank) const { return rank.value < members_.size(); }

  Incarnation incarnation(Rank rank) const { return members_[rank.value].incarnation; }
  void set_incarnation(Rank rank, Incarnation incarnation) {
    PARLEY_CHECK(incarnation >= members_[rank.value].incarnation, "incarnations only grow");
    members_[rank.value].incarnation = incarnation;
  }

  // The clock from which on this worker pushes nothing; kEndOfClocks while it has not finished.
  Clock end(Rank rank) const { return members_[rank.value].end; }
  void finish(Rank rank, Clock end) { members_[rank.value].end = end; }
  // The clock at which the whole group stops (bsp): never applied, though some may have pushed it.
  Clock stop() const { return stop_; }
  void stop_at(Clock clock) { stop_ = std::min(stop_, clock); }
  // A push of this clock is to be expected from this worker.
  bool pushes(Rank rank, Clock clock) const { return clock < end(rank); }

 private:
  struct Member {
    Incarnation incarnation;
    Clock end = kEndOfClocks;
  };
  std::vector<Member> members_;
  Clock stop_ = kEndOfClocks;
};

}  // namespace parley

// How many pushes of each worker one slice has taken in: the one table behind bsp, ssp and asp. Worker w has pushed
// clocks 0 .. pushed(w) - 1. Owned by the slice's shard.
#pragma once

#include "common/base/types.h"
#include "server/core/worker_group.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace parley {

class ClockTable {
 public:
  explicit ClockTable(std::uint32_t workers) : pushed_(workers) {}

  Clock pushed(Rank rank) const { return pushed_[rank.value]; }
  void advance(Rank rank) { ++pushed_[rank.value]; }

  // The smallest count among the workers that still have something to push; kEndOfClocks where nobody has: who has
  // finished holds nobody up.
  Clock slowest(const WorkerGroup& group) const {
    Clock least = kEndOfClocks;
    for (std::uint32_t rank = 0; rank < pushed_.size(); ++rank)
      if (group.pushes(Rank(rank), pushed_[rank])) least = std::min(least, pushed_[rank]);
    return least;
  }

 private:
  std::vector<Clock> pushed_;
};

}  // namespace parley

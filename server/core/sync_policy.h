// When a push is applied and when its answer leaves: one rule for bsp (staleness 0), ssp (s) and asp (no bound).
//
//  - gathers(): a push of clock t waits until every member's push of clock t is here; all are applied as one mean.
//    Otherwise a push is applied on arrival, with the learning rate divided by the number of workers.
//  - may_answer(): the answer to a push of clock c leaves when every member has pushed at least clock c - s, so that at
//    each answer the asker's clock less the smallest pushed clock is at most s (Ho et al., NIPS 2013).
#pragma once

#include "common/base/types.h"

#include <cstdint>
#include <limits>

namespace parley {

struct SyncPolicy {
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t staleness = 0;

  bool gathers() const { return staleness == 0; }

  // pushed: the slowest member's count of pushes (it pushed clocks 0 .. pushed - 1).
  bool may_answer(Clock asked, Clock pushed) const { return pushed > asked || asked.value - pushed.value < staleness; }

  // The asker's clock less the smallest pushed clock; 0 where the asker is not ahead.
  static std::uint64_t lead(Clock asked, Clock pushed) { return pushed > asked ? 0 : asked.value + 1 - pushed.value; }
};

}  // namespace parley

// The protocol's only reader of time. The loops read it and hand the instant to the state machines; wall-clock time
// (log lines, reports) never enters a decision, since it jumps.
#pragma once

#include "common/base/instant.h"

#include <chrono>

namespace parley {

inline Instant monotonic_now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace parley

// Time as the state machines see it: it is handed to them, they never read it. There is no now() here on purpose; the
// loops read the monotonic clock (common/transport), the simulator has a virtual one.
#pragma once

#include <chrono>

namespace parley {

struct MonotonicEpoch {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<MonotonicEpoch>;
  static constexpr bool is_steady = true;
};

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<MonotonicEpoch, Duration>;

// "No deadline": later than every instant that a run can reach.
inline constexpr Instant kNever = Instant::max();

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace parley

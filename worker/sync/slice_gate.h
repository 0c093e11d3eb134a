// Where backward hands finished slices to the thread that sends them, which takes them in an order of its own.
//
// Thread rule: reset() while no step runs; mark() from any thread; wait() from the sending thread; abandon() from the
// owner. What was written before mark(s) is visible after wait(s).
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace parley {

class SliceGate {
 public:
  explicit SliceGate(const Layout& layout);

  // A new step: no slice is ready.
  void reset();
  // The slice is ready, once a step. present: a byte a part, whether it has a gradient; copied.
  void mark(SliceId slice, std::span<const std::uint8_t> present);
  // Every slice is ready and no part has a gradient: the step of a rank without data.
  void mark_all_absent();
  // Waits for the slice; its parts' presence, valid until reset(). Throws RunError once abandoned.
  std::span<const std::uint8_t> wait(SliceId slice);
  bool all_ready() const;
  // No more slices will come: ends wait().
  void abandon();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::uint8_t>> present_;  // a slice's is the marker's until it is ready, then read-only
  std::vector<std::uint8_t> ready_;
  std::size_t ready_count_ = 0;
  bool abandoned_ = false;
};

}  // namespace parley

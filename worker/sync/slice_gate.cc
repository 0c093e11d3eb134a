#include "worker/sync/slice_gate.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <algorithm>

namespace parley {

SliceGate::SliceGate(const Layout& layout) : ready_(layout.slice_count(), 0) {
  for (const Slice& slice : layout.slices()) present_.emplace_back(slice.parts.size(), 0);
}

void SliceGate::reset() {
  const std::lock_guard lock(mutex_);
  std::fill(ready_.begin(), ready_.end(), 0);
  ready_count_ = 0;
}

void SliceGate::mark(SliceId slice, std::span<const std::uint8_t> present) {
  {
    const std::lock_guard lock(mutex_);
    PARLEY_CHECK(slice.value < ready_.size(), "slice {} of {}", slice, ready_.size());
    PARLEY_CHECK(ready_[slice.value] == 0, "slice {} was marked ready twice in one step", slice);
    auto& ours = present_[slice.value];
    PARLEY_CHECK(present.size() == ours.size(), "{} flags for the {} parts of slice {}", present.size(), ours.size(),
                 slice);
    std::copy(present.begin(), present.end(), ours.begin());
    ready_[slice.value] = 1;
    ++ready_count_;
  }
  changed_.notify_all();
}

void SliceGate::mark_all_absent() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& present : present_) std::fill(present.begin(), present.end(), 0);
    std::fill(ready_.begin(), ready_.end(), 1);
    ready_count_ = ready_.size();
  }
  changed_.notify_all();
}

std::span<const std::uint8_t> SliceGate::wait(SliceId slice) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return abandoned_ || ready_[slice.value] != 0; });
  if (abandoned_) throw RunError("the training step was given up before its backward was complete");
  return present_[slice.value];
}

bool SliceGate::all_ready() const {
  const std::lock_guard lock(mutex_);
  return ready_count_ == ready_.size();
}

void SliceGate::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_all();
}

}  // namespace parley

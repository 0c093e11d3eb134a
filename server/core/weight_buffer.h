// The memory of one version of one slice, shared between the store that writes it and the frames that carry it to
// workers. Reference-counted by hand because the last reference can go in a ZeroMQ I/O thread, where only an atomic
// decrement and a free() are allowed.
//
// Rule: only the store writes, and only while it holds the single reference (unshared()).
#pragma once

#include "common/layout/arena.h"
#include "common/wire/frame.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley {

class WeightBuffer {
 public:
  struct Drop {
    void operator()(WeightBuffer* buffer) const { buffer->drop(); }
  };
  using Pointer = std::unique_ptr<WeightBuffer, Drop>;

  static Pointer make(std::uint64_t count) { return Pointer(new WeightBuffer(count)); }

  std::span<float> values() { return block_.values(); }
  std::span<const float> values() const { return block_.values(); }
  bool unshared() const { return references_.load(std::memory_order_acquire) == 1; }

  // A frame over the values that keeps the buffer alive.
  Frame lend() {
    references_.fetch_add(1, std::memory_order_relaxed);
    return {std::as_bytes(values()), [](void* context) { static_cast<WeightBuffer*>(context)->drop(); }, this};
  }

 private:
  explicit WeightBuffer(std::uint64_t count) : block_(count) {}
  void drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  FloatBlock block_;
  std::atomic<std::uint32_t> references_{1};
};

// Versions of one slice: the newest and the one before stay readable; the next is written into a buffer that nobody
// reads. A buffer still lent out when its turn comes is left to its readers and replaced; it is taken up again once
// they are through, so there are never more than lent + 3.
class WeightVersions {
 public:
  explicit WeightVersions(std::uint64_t count)
      : count_(count), newest_(WeightBuffer::make(count)), previous_(WeightBuffer::make(count)) {}

  WeightBuffer& newest() { return *newest_; }
  const WeightBuffer& newest() const { return *newest_; }
  WeightBuffer& previous() { return *previous_; }

  // A buffer to write the next version into; publish() makes it the newest.
  WeightBuffer& next() {
    if (previous_->unshared()) {
      next_ = std::move(previous_);
    } else {
      retired_.push_back(std::move(previous_));
      next_ = take_retired();
    }
    return *next_;
  }
  void publish() {
    previous_ = std::move(newest_);
    newest_ = std::move(next_);
  }

 private:
  WeightBuffer::Pointer take_retired() {
    for (auto& buffer : retired_)
      if (buffer->unshared()) {
        auto found = std::move(buffer);
        buffer = std::move(retired_.back());
        retired_.pop_back();
        return found;
      }
    return WeightBuffer::make(count_);
  }

  std::uint64_t count_;
  WeightBuffer::Pointer newest_;
  WeightBuffer::Pointer previous_;
  WeightBuffer::Pointer next_;
  std::vector<WeightBuffer::Pointer> retired_;
};

}  // namespace parley

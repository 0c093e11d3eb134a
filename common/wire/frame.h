// One contiguous range of bytes of a message: owned (a received ZeroMQ message, a header that we built) or borrowed (a
// slice of an arena or of a weight buffer), with the way to give it back. Move-only; giving back happens exactly once,
// on destruction, on whichever thread that is: a release function must be safe there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace parley {

// Counts the frames that are still out on a range of memory. The owner of the memory may rewrite it when none is:
// `idle()` acquires what the last release released. Any thread may release.
class Lease {
 public:
  void take() { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() { count_.fetch_sub(1, std::memory_order_release); }
  bool idle() const { return count_.load(std::memory_order_acquire) == 0; }

 private:
  std::atomic<std::uint32_t> count_{0};
};

class Frame {
 public:
  using Release = void (*)(void* context);

  Frame() = default;
  Frame(std::span<const std::byte> bytes, Release release, void* context)
      : bytes_(bytes), release_(release), context_(context) {}
  Frame(Frame&& other) noexcept { *this = std::move(other); }
  Frame& operator=(Frame&& other) noexcept {
    if (this != &other) {
      reset();
      bytes_ = std::exchange(other.bytes_, {});
      release_ = std::exchange(other.release_, nullptr);
      context_ = std::exchange(other.context_, nullptr);
    }
    return *this;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { reset(); }

  // Takes `lease` now and releases it with the frame; the lease must outlive the frame.
  static Frame borrow(std::span<const std::byte> bytes, Lease& lease) {
    lease.take();
    return {bytes, [](void* context) { static_cast<Lease*>(context)->release(); }, &lease};
  }
  // An own copy of `bytes`.
  static Frame copy(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

  void reset() {
    if (release_ != nullptr) release_(context_);
    release_ = nullptr;
    context_ = nullptr;
    bytes_ = {};
  }

 private:
  std::span<const std::byte> bytes_;
  Release release_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace parley

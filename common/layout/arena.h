// Flat float32 memory laid out as a Layout says, and the two-halved parameter arena of a worker.
//
// ParameterArena has two halves: the weights of clock t + 1 arrive in one while backward of clock t still reads the
// other (autograd cannot notice a raw write). Clock c reads the half c % 2; whoever fills clock c writes that half.
// GradientArena has one. Both are plain memory: who may touch which range when is the protocol's business
// (worker/parameter_client.h), nothing here locks.
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace parley {

// Zeroed float32 memory on a 64-byte boundary; never empty, so that a model without elements still has an address.
class FloatBlock {
 public:
  explicit FloatBlock(std::uint64_t count) : count_(count) {
    const std::uint64_t bytes =
        (count * sizeof(float) + kTensorAlignmentBytes) / kTensorAlignmentBytes * kTensorAlignmentBytes;
    memory_.reset(static_cast<float*>(std::aligned_alloc(kTensorAlignmentBytes, bytes)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, bytes);
  }

  std::span<float> values() { return {memory_.get(), count_}; }
  std::span<const float> values() const { return {memory_.get(), count_}; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> memory_;
  std::uint64_t count_;
};

// A view of caller-owned memory of layout.arena_count() float32 each half.
class ParameterArena {
 public:
  ParameterArena(const Layout& layout, std::span<float> half0, std::span<float> half1)
      : layout_(layout), halves_{half0, half1} {}

  std::span<float> half(Clock clock) const { return halves_[clock.value % 2]; }
  std::span<float> slice(SliceId id, Clock clock) const {
    const Slice& where = layout_.slice(id);
    return half(clock).subspan(where.offset, where.count);
  }

 private:
  const Layout& layout_;
  std::span<float> halves_[2];
};

class GradientArena {
 public:
  GradientArena(const Layout& layout, std::span<float> values) : layout_(layout), values_(values) {}

  std::span<float> values() const { return values_; }
  std::span<float> slice(SliceId id) const {
    const Slice& where = layout_.slice(id);
    return values_.subspan(where.offset, where.count);
  }

 private:
  const Layout& layout_;
  std::span<float> values_;
};

}  // namespace parley

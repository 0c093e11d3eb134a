#include "worker/training/host_arenas.h"

#include "common/base/log.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace parley {
namespace {

at::Tensor allocate(const Layout& layout, bool pinned) {
  const auto options = at::TensorOptions().dtype(at::kFloat).pinned_memory(pinned);
  // Never empty, so that a model without anything to train still has an address.
  const auto count = static_cast<std::int64_t>(std::max<std::uint64_t>(layout.arena_count(), 1));
  at::Tensor memory = at::empty({count}, options).zero_();
  const auto address = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr());
  PARLEY_CHECK(address % kTensorAlignmentBytes == 0, "arena memory at {:#x}", address);
  return memory;
}

std::span<float> values(const at::Tensor& memory, const Layout& layout) {
  return {memory.mutable_data_ptr<float>(), layout.arena_count()};
}

}  // namespace

HostArenas::HostArenas(const Layout& layout, bool pinned)
    : layout_(layout),
      halves_{allocate(layout, pinned), allocate(layout, pinned)},
      gradients_(allocate(layout, pinned)) {}

ParameterArena HostArenas::parameters() const {
  return {layout_, values(halves_[0], layout_), values(halves_[1], layout_)};
}

GradientArena HostArenas::gradients() const { return {layout_, values(gradients_, layout_)}; }

}  // namespace parley

// The worker's arenas as memory of this process: two halves of weights and one of gradients, zeroed, 64-byte aligned,
// page-locked where a device copies from and to them.
#pragma once

#include "common/layout/arena.h"
#include "common/layout/layout.h"

#include <ATen/core/Tensor.h>

namespace parley {

class HostArenas {
 public:
  // pinned: needs a CUDA device. `layout` must outlive this object and the arenas that it gives out.
  HostArenas(const Layout& layout, bool pinned);

  ParameterArena parameters() const;
  GradientArena gradients() const;

 private:
  const Layout& layout_;
  at::Tensor halves_[2];
  at::Tensor gradients_;
};

}  // namespace parley

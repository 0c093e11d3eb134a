// One number for all final weights: equal where two runs ended bit-identical.
#pragma once

#include "common/layout/layout.h"

#include <span>
#include <string>

namespace parley {

// XXH3-128 in hex over the float32 values of all parameters in layout order, little-endian, tensors only: neither the
// padding between them nor buffers. `weights`: layout.arena_count() values.
std::string weights_digest(const Layout& layout, std::span<const float> weights);

}  // namespace parley

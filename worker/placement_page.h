// What `parley-worker --print-placement` prints: which server would hold how much, as JSON, computed as the servers
// would.
#pragma once

#include "common/config/config.h"
#include "common/layout/layout.h"

#include <string>

namespace parley {

// {"tensors": [{"name", "shape", "bytes"}], "slices", "bytes", "servers": [{"rank", "bytes", "slices",
// "memory_bytes"}], "skew"}. memory_bytes is an estimate of what a server needs for its slices at most: two versions of
// the weights, the optimizer's slots, a received gradient and a version under way a worker. Modes without servers have
// an empty list.
std::string placement_page(const Config& config, const Layout& layout);

}  // namespace parley

// A push of one slice as a shard keeps it: until its clock is complete (bsp), and its answer's address until that
// leaves.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/wire/frame.h"
#include "common/wire/outbox.h"

#include <cstdint>
#include <vector>

namespace parley {

// Where the answer to a push or pull goes. A newer message for the same slice replaces it.
struct Ask {
  Route route;
  Sequence sequence;
  Clock clock;
  Instant arrived;
  std::uint64_t lag = 0;  // updates that the pushed gradient did not know of
};

struct PendingPush {
  Ask ask;
  std::uint64_t samples = 0;
  std::vector<std::uint8_t> present;  // a byte a part of the slice; empty: no gradient
  Frame gradient;
};

}  // namespace parley

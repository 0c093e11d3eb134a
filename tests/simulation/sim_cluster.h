// A whole cluster in one thread: the product's own Coordinator, Member, Shard and ParameterClient over a seeded
// network. run() throws Violation where a promise is broken, and says how far it came.
#pragma once

#include "common/layout/placement.h"
#include "server/core/coordinator.h"
#include "server/core/shard.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/sim_worker.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace parley::simulation {

struct RunResult {
  std::uint64_t events = 0;
  std::uint64_t answers_checked = 0;
  std::uint64_t repeats = 0;  // slices that workers sent again
  std::uint64_t late = 0;     // messages that shards dropped as old
  std::uint64_t lead_max = 0;
  double seconds = 0;             // simulated
  std::uint64_t fingerprint = 0;  // of order and content of everything that was delivered: equal for equal seeds
  std::vector<std::vector<float>> weights;  // a tensor in arena order, final
};

RunResult run(const Scenario& scenario);

}  // namespace parley::simulation

// What one simulated run does, drawn from its seed: every knob is random (swarm testing), so that rare combinations
// come up by themselves.
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "server/core/dense_store.h"
#include "server/core/sync_policy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley::simulation {

struct Scenario {
  std::uint64_t seed = 0;
  std::uint32_t servers = 1;
  std::uint32_t shards_per_server = 1;
  std::uint32_t workers = 1;
  std::vector<TensorSpec> tensors;
  std::uint64_t slice_bytes = 64;
  SyncPolicy sync;
  StoreOptions store;
  double clip_norm = 0;
  bool skip_non_finite = false;
  std::vector<std::uint64_t> steps;  // a rank: how many it takes before its data ends
  bool equal_samples = true;
  double absent_rate = 0;    // how often a tensor has no gradient on a rank
  std::uint32_t resets = 0;  // broken connections between workers and shards
  std::optional<Rank> slow_rank;
  std::optional<Clock> stop_at;  // bsp: rank 0 asks the group to stop there
  struct NonFinite {
    Rank rank;
    Clock clock;
    std::uint32_t tensor;
  };
  std::optional<NonFinite> non_finite;

  std::uint32_t shard_count() const { return servers * shards_per_server; }
  std::uint64_t samples(Rank rank, Clock clock) const;
  bool present(Rank rank, Clock clock, std::uint32_t tensor) const;
  // The gradient of one element (index within its tensor) at a weight.
  float gradient(Rank rank, Clock clock, std::uint32_t tensor, std::uint64_t element, float weight) const;
  float initial(std::uint32_t tensor, std::uint64_t element) const;
  // Clocks that a rank takes part in, a stop included.
  std::uint64_t last_clock(Rank rank) const;
  std::string describe() const;
};

// A scenario in which nothing but the network's order is unusual, in the given mode.
Scenario draw(std::uint64_t seed, SyncPolicy sync);

}  // namespace parley::simulation

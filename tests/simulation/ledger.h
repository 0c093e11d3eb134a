// The checker of the protocol's promises, kept apart from the machines: it watches what arrives at shards and what
// leaves them, and throws Violation at the first broken promise.
//
//  - ssp bound: an answer to (rank, clock) leaves only when every worker that has not finished pushed clock - s (bsp: s
//    = 0).
//  - own pushes are visible: the version answered has taken in every push of the asker.
//  - applied once: no version ever exceeds the number of distinct pushes (asp, ssp) or clocks (bsp) that arrived.
#pragma once

#include "common/base/types.h"
#include "common/wire/message.h"
#include "server/core/sync_policy.h"

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

namespace parley::simulation {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Ledger {
 public:
  Ledger(SyncPolicy sync, std::uint32_t workers, std::size_t slices);

  // A message from a worker arrived at the shard that owns its slices.
  void arrived(ShardId shard, const Incoming& message);
  // A shard wants this sent to a worker.
  void leaves(ShardId shard, const Outgoing& message, Rank to);

  std::uint64_t pushes(SliceId slice) const;
  std::uint64_t answers_checked() const { return answers_checked_; }

 private:
  struct Asked {
    Clock clock;
    bool push = false;
  };

  const SyncPolicy sync_;
  const std::uint32_t workers_;
  std::vector<std::vector<std::set<Clock>>> pushed_;  // a slice, a rank: distinct clocks that arrived
  std::map<std::pair<ShardId, Rank>, Clock> ended_;
  std::map<std::tuple<Rank, std::uint64_t>, Asked> asked_;  // by sequence
  std::uint64_t answers_checked_ = 0;
};

}  // namespace parley::simulation

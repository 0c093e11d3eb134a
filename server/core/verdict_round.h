// The first phase of a two-phase clock: every shard judges its part of the gradient (finite? sum of squares a slice),
// and nobody applies before all verdicts of that clock are known. All shards combine the same numbers in slice order,
// so all decide alike whatever the number of shards.
//
// Owned by one shard. Verdicts of clock t are kept until t + 1 is applied here: a neighbour may ask again.
#pragma once

#include "common/base/types.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace parley {

struct SliceVerdict {
  SliceId slice;
  double sum_of_squares = 0;
};

struct ShardVerdict {
  bool finite = true;
  std::vector<SliceVerdict> slices;
};

struct ClockDecision {
  bool skip = false;            // the clock is dropped: versions advance, state does not
  float gradient_scale = 1.0F;  // factor on every mean gradient
};

class VerdictRound {
 public:
  // `shards`: how many shards own at least one slice. clip_norm: largest L2 norm of the whole mean gradient; 0: none.
  VerdictRound(std::uint32_t shards, double clip_norm) : shards_(shards), clip_norm_(clip_norm) {}

  // A repeat of a verdict is ignored.
  void add(Clock clock, ShardId from, ShardVerdict verdict);
  bool has(Clock clock, ShardId from) const;
  const ShardVerdict& verdict(Clock clock, ShardId from) const { return rounds_.at(clock).at(from); }
  // The decision, once all verdicts of that clock are here.
  std::optional<ClockDecision> decide(Clock clock) const;
  // Forgets the clocks below.
  void forget_before(Clock clock) { rounds_.erase(rounds_.begin(), rounds_.lower_bound(clock)); }
  // The clocks held, ascending.
  std::vector<Clock> clocks() const;

 private:
  std::uint32_t shards_;
  double clip_norm_;
  std::map<Clock, std::map<ShardId, ShardVerdict>> rounds_;
};

}  // namespace parley

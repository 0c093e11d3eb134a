// Which shard owns which slice: a pure function of (layout, number of shards), computed by every process for itself.
// Slices go, largest first, to the shard with the fewest bytes so far (Graham's LPT rule, SIAM J. Appl. Math. 1969);
// ties go to the lower id, so the result is the same everywhere.
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace parley {

class Placement {
 public:
  // shard_count > 0. Where there are more shards than slices some shards own nothing; that is allowed.
  Placement(const Layout& layout, std::uint32_t shard_count);

  ShardId owner(SliceId slice) const { return owners_[slice.value]; }
  // In ascending order of slice id.
  std::span<const SliceId> slices(ShardId shard) const { return slices_[shard.value]; }
  std::uint64_t bytes(ShardId shard) const { return bytes_[shard.value]; }
  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(slices_.size()); }
  // Largest over smallest load in bytes; 1 where all are equal, infinity where a shard owns nothing and another does.
  double skew() const;

 private:
  std::vector<ShardId> owners_;
  std::vector<std::vector<SliceId>> slices_;
  std::vector<std::uint64_t> bytes_;
};

}  // namespace parley

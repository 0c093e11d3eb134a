// The values of the slices that one shard owns: two readable versions of the weights, optimizer state, and the fused
// step from the workers' gradients to the next version. Owned by its shard, one thread.
//
// Invariants
//  1. Version v stays readable (lend, values) until version v + 2 is published; a lent frame stays valid for good.
//  2. The result of apply() depends on the contributions' values and their order alone, which is rank order.
//  3. Nothing of a slice changes before its mean was found finite.
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer/slice_optimizer.h"
#include "common/wire/frame.h"
#include "server/core/weight_buffer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace parley {

struct StoreOptions {
  OptimizerOptions optimizer;
  std::vector<GroupOptions> groups;  // one a parameter group of the layout; missing ones take the last, or defaults
  ScheduleOptions schedule;
};

// One worker's push of one slice.
struct Contribution {
  Rank rank;
  std::uint64_t samples = 0;
  // A byte a part of the slice: whether the tensor had a gradient. Empty: none had.
  std::span<const std::uint8_t> present;
  // slice.count float32; unused (may be empty) where nothing is present.
  std::span<const float> gradient;
};

class DenseStore {
 public:
  // `layout` must outlive the store.
  DenseStore(const StoreOptions& options, const Layout& layout, std::span<const SliceId> slices);

  bool owns(SliceId id) const { return entries_.contains(id.value); }
  // Sets version 0; slice.count float32 values.
  void initialize(SliceId id, std::span<const float> values);
  bool initialized(SliceId id) const { return entry(id).initialized; }
  Version version(SliceId id) const { return entry(id).version; }

  // A frame over the given version's weights: the newest or the one before; nothing for any other.
  std::optional<Frame> lend(SliceId id, Version version);
  std::span<const float> values(SliceId id) const { return entry(id).weights.newest().values(); }
  const SliceOptimizer& optimizer(SliceId id) const { return entry(id).optimizer; }

  // Computes the weighted mean of the contributions (rank order) into the store's scratch memory, where the next
  // apply() or sum_of_squares() of this slice finds it. Nothing where it is finite; else one line that says which
  // rank's which tensor is not.
  std::optional<std::string> gather(SliceId id, std::span<const Contribution> contributions);
  // Over the gathered mean, padding excluded.
  double sum_of_squares(SliceId id) const;

  // One optimizer step on the gathered mean times `gradient_scale`: publishes version + 1. `clock` selects the learning
  // rate, which is multiplied by rate_scale.
  void apply(SliceId id, Clock clock, double rate_scale, float gradient_scale);
  // Publishes version + 1 with the values of version; state does not change.
  void skip(SliceId id);

 private:
  struct Entry {
    Entry(const StoreOptions& options, const GroupOptions& group, const Slice& slice)
        : weights(slice.count), optimizer(options.optimizer, group, slice) {}
    WeightVersions weights;
    SliceOptimizer optimizer;
    Version version;
    bool initialized = false;
  };

  Entry& entry(SliceId id);
  const Entry& entry(SliceId id) const;
  std::string name_non_finite(const Slice& slice, std::span<const Contribution> contributions,
                              const SlicePart& part) const;

  const StoreOptions options_;
  const Layout& layout_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  // Scratch for one slice at a time: the mean and which parts have one.
  SliceId gathered_;
  std::vector<float> mean_;
  std::vector<std::uint8_t> present_;
  std::vector<const float*> gradients_;
  std::vector<std::uint64_t> samples_;
};

}  // namespace parley

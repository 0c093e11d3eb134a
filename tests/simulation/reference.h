// The sequential reference of a bsp run: one loop over clocks and whole tensors, written apart from the product (no
// slices, no shards, no messages). Version c of every tensor is kept, so that a worker's weights can be compared at
// each clock.
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"
#include "tests/simulation/scenario.h"

#include <optional>
#include <string>
#include <vector>

namespace parley::simulation {

class Reference {
 public:
  explicit Reference(const Scenario& scenario, const Layout& layout);

  std::uint64_t clocks() const { return versions_.size() - 1; }
  // Values of a tensor (index in arena order) after `clock` updates.
  const std::vector<float>& values(Clock clock, std::uint32_t tensor) const { return versions_[clock.value][tensor]; }

 private:
  using Tensors = std::vector<std::vector<float>>;

  void step(Clock clock);
  std::vector<Rank> members(Clock clock) const;
  std::optional<std::vector<float>> mean(Clock clock, std::uint32_t tensor) const;
  float clip_scale(const std::vector<std::optional<std::vector<float>>>& means) const;

  const Scenario& scenario_;
  const Layout& layout_;
  std::vector<Tensors> versions_;
  std::vector<std::vector<std::vector<float>>> slots_;  // a tensor, a slot
  std::vector<std::uint64_t> steps_;                    // a tensor
};

}  // namespace parley::simulation

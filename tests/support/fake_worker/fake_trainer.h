// The training loop of a fake worker: worker/training/trainer.h without a model. Gradients come from the plan's formula
// and are pure functions of (seed, rank, clock, tensor's name, element) and the weight, so that two runs that should
// agree do.
#pragma once

#include "common/base/types.h"
#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "tests/support/fake_worker/plan.h"
#include "worker/sync/strategy.h"

#include <cstdint>
#include <vector>

namespace parley {

struct FakeResult {
  Clock end;         // the final weights' clock
  Clock final_half;  // where they stand
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
  bool stopped = false;  // the group stopped before this rank's data ended
};

class FakeTrainer {
 public:
  // `slow_factor` stretches the plan's step time. All references outlive the trainer.
  FakeTrainer(const FakePlan& plan, const Layout& layout, ParameterArena parameters, GradientArena gradients, Rank rank,
              std::uint64_t seed, double slow_factor);

  // Fills half(0) with the first weights.
  void initialize();
  FakeResult run(Strategy& strategy);

 private:
  void hold(Clock clock) const;
  void fill_gradients(Clock clock);
  void fill(const FakeTensor& tensor, const TensorPlace& where, Clock clock);
  void mark_ready(Strategy& strategy, Clock clock);

  const FakePlan& plan_;
  const Layout& layout_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  const Rank rank_;
  const std::uint64_t seed_;
  const double slow_factor_;
  std::vector<const FakeTensor*> tensors_;  // in arena order
};

}  // namespace parley

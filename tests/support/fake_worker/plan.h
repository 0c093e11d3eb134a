// What a fake worker pretends to be: the tensors of its model, how its gradients come about, how long its data lasts.
// Read once, from a TOML file:
//
//   steps = [50, 3]            # clocks until the data ends, by rank; the last number stands for all further ranks
//   samples = [64]             # of a clock, by rank
//   step_ms = 0                # time that a step takes; debug.slow_rank takes debug.slow_factor times as long
//   dataset = 1000             # samples of the training set that it registers with
//   gradient = "hash"          # pseudo-random from (seed, rank, clock, tensor, element) plus a quarter of the weight, or
//                              # "constant"
//   gradient_value = 1.0       # of "constant"
//   stop_at = 20               # clock at which rank 0 asks the group to stop
//   hold = { clock = 5, file = "go" }   # every rank waits at the start of that clock until the file is there
//   nan = { rank = 1, clock = 7, tensor = "w" }
//
//   [[tensor]]                 # in order of registration
//   name = "w"                 # with repeat: w.0, w.1, ...
//   shape = [3]
//   group = 0
//   kind = "parameter"         # or "buffer"
//   initial = 0.5              # of every element, or "hash"
//   repeat = 1
//   absent_ranks = [1]         # no gradient on these ranks (left out: on all) ...
//   absent_clocks = [0, 2]     # ... at these clocks (left out: at all); with neither key it is never absent
#pragma once

#include "common/base/types.h"
#include "common/layout/layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley {

struct FakeTensor {
  TensorSpec spec;
  std::optional<double> initial;  // none: pseudo-random from (seed, name, element)
  bool sometimes_absent = false;
  std::vector<std::int64_t> absent_ranks;
  std::vector<std::int64_t> absent_clocks;

  bool absent(Rank rank, Clock clock) const;
};

struct FakePlan {
  struct NonFinite {
    std::int64_t rank = 0;
    std::int64_t clock = 0;
    std::string tensor;
  };

  struct Hold {
    std::int64_t clock = 0;
    std::string file;
  };

  std::vector<FakeTensor> tensors;
  std::vector<std::int64_t> steps = {10};
  std::vector<std::int64_t> samples = {8};
  double step_ms = 0;
  std::int64_t dataset = 1000;
  std::optional<double> constant;  // none: "hash"
  std::optional<std::int64_t> stop_at;
  std::optional<NonFinite> nan;
  std::optional<Hold> hold;

  std::vector<TensorSpec> specs() const;
  std::uint64_t steps_of(Rank rank) const;
  std::uint64_t samples_of(Rank rank) const;
};

// UsageError naming the file and what is wrong in it.
FakePlan read_plan(const std::string& path);

}  // namespace parley

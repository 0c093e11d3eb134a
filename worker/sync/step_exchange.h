// What the ranks of an all-reduce tell each other about a step besides the gradients: at its opening who has how many
// samples and whether to stop, at its closing which tensors had gradients and whose were not finite. Each is one small
// all-reduce: a rank writes its own places and zeros elsewhere, so the sum gathers all of them exactly.
//
// One object a rank, owned by the thread that calls the collective; every rank calls open() and close() in the same
// order. Invariant: all ranks get equal answers.
#pragma once

#include "worker/collective/collective.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley {

struct StepOpening {
  std::vector<std::uint64_t> samples;  // a rank
  bool stop = false;                   // somebody asks for a stop at this clock
  std::uint32_t finished = 0;          // ranks that have no more data
};

struct StepClosing {
  std::vector<std::uint8_t> present;                     // a tensor: somebody had a gradient of it
  std::vector<std::optional<std::uint32_t>> non_finite;  // a rank: its first tensor that is not
  std::vector<double> busy_seconds;                      // a rank: how long it was in this step's operations
};

class StepExchange {
 public:
  StepExchange(Collective& collective, std::size_t tensor_count);

  // samples: under 2^48. The answers stay valid until the next call of the same function.
  const StepOpening& open(std::uint64_t samples, bool stop, bool finished);
  // present: a byte a tensor.
  const StepClosing& close(std::span<const std::uint8_t> present, std::optional<std::uint32_t> non_finite,
                           double busy_seconds);

 private:
  Collective& collective_;
  StepOpening opening_;
  StepClosing closing_;
  std::vector<float> opening_values_;
  std::vector<float> closing_values_;
};

}  // namespace parley

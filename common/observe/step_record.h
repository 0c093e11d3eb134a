// What one step of one rank took and gave: a line of metrics.jsonl. Times in seconds.
#pragma once

#include "common/base/types.h"

#include <cstdint>
#include <optional>

namespace parley {

struct StepTimes {
  double data = 0;           // finding and copying the batch
  double forward = 0;        // forward pass and loss
  double backward = 0;       // backward pass; what the hooks take is in it
  double communication = 0;  // blocked on sending, receiving and applying
  double waiting = 0;        // blocked because other workers were not as far

  double compute() const { return forward + backward; }
  StepTimes& operator+=(const StepTimes& other) {
    data += other.data;
    forward += other.forward;
    backward += other.backward;
    communication += other.communication;
    waiting += other.waiting;
    return *this;
  }
};

struct StepRecord {
  Rank rank;
  Clock clock;
  std::uint64_t epoch = 0;     // 0-based
  std::uint64_t samples = 0;   // of this rank
  std::optional<double> loss;  // mean over them; none for an empty share
  double learning_rate = 0;    // by the schedule
  StepTimes times;
};

}  // namespace parley

// The learning rate as a pure function of the clock (0-based; the step of clock c uses learning_rate(options, c)): a
// restarted process needs no state to go on with it. In bsp it is the slice's clock, in ssp and asp the pusher's.
//
// With w warm-up steps, base rate b and m = c - w:
//   c < w     warm-up:  b * (c + 1) / w, so that the first step already moves and clock w - 1 has
//   the full rate c >= w    constant: b
//             step:     b * gamma^(m / every), with integer division
//             cosine:   f + (b - f) * (1 + cos(pi * min(m, T) / T)) / 2, with T = total_steps - w
//             and floor rate f;
//                       f where T is 0, that is, where the warm-up takes the whole run
// total_steps spans the run's whole epochs, even if training stops earlier (train.max_steps, a target accuracy): a run
// that is cut short and continued later walks one and the same curve.
//
// All in double; step_scalars (optimizer.h) rounds once. Thread rule: a pure function.
#pragma once

#include "common/base/types.h"

#include <cstdint>

namespace parley {

enum class ScheduleKind : std::uint8_t { constant, step, cosine };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  double base_rate = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t every_steps = 1;  // step: steps between two changes of the rate, at least 1
  double gamma = 1;               // step: factor of a change
  double floor_rate = 0;          // cosine: the rate at the end
  std::uint64_t total_steps = 0;  // cosine: steps of all epochs, warm-up included
};

double learning_rate(const ScheduleOptions& options, Clock clock);

}  // namespace parley

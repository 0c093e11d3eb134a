#include "common/optimizer/schedule.h"

#include "common/base/log.h"

#include <cmath>
#include <numbers>

namespace parley {
namespace {

double step_rate(const ScheduleOptions& options, std::uint64_t main_step) {
  PARLEY_CHECK(options.every_steps > 0, "a step schedule changes every 0 steps");
  const std::uint64_t changes = main_step / options.every_steps;
  return options.base_rate * std::pow(options.gamma, static_cast<double>(changes));
}

double cosine_rate(const ScheduleOptions& options, std::uint64_t main_step) {
  const std::uint64_t warmup = options.warmup_steps;
  const std::uint64_t span = options.total_steps > warmup ? options.total_steps - warmup : 0;
  if (main_step >= span) return options.floor_rate;
  const double progress = static_cast<double>(main_step) / static_cast<double>(span);
  return options.floor_rate +
         (options.base_rate - options.floor_rate) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace

double learning_rate(const ScheduleOptions& options, Clock clock) {
  const std::uint64_t warmup = options.warmup_steps;
  if (clock.value < warmup) {
    return options.base_rate * static_cast<double>(clock.value + 1) / static_cast<double>(warmup);
  }
  const std::uint64_t main_step = clock.value - warmup;
  switch (options.kind) {
    case ScheduleKind::constant:
      return options.base_rate;
    case ScheduleKind::step:
      return step_rate(options, main_step);
    case ScheduleKind::cosine:
      return cosine_rate(options, main_step);
  }
  return options.base_rate;
}

}  // namespace parley

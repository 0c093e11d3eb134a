#include "common/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace parley {
namespace {

TEST(Schedule, ConstantIsTheBaseRate) {
  const ScheduleOptions options{.base_rate = 0.1};
  EXPECT_EQ(learning_rate(options, Clock(0)), 0.1);
  EXPECT_EQ(learning_rate(options, Clock(1'000'000)), 0.1);
}

TEST(Schedule, WarmupRisesInALineToTheFullRate) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::step, ScheduleKind::cosine}) {
    const ScheduleOptions options{.kind = kind, .base_rate = 0.8, .warmup_steps = 4, .gamma = 0.1, .total_steps = 100};
    EXPECT_DOUBLE_EQ(learning_rate(options, Clock(0)), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(options, Clock(1)), 0.4);
    EXPECT_DOUBLE_EQ(learning_rate(options, Clock(3)), 0.8);
    EXPECT_DOUBLE_EQ(learning_rate(options, Clock(4)), 0.8) << "the main schedule starts here";
  }
}

TEST(Schedule, StepMultipliesEverySoManySteps) {
  const ScheduleOptions options{
      .kind = ScheduleKind::step, .base_rate = 1, .warmup_steps = 2, .every_steps = 10, .gamma = 0.5};
  EXPECT_EQ(learning_rate(options, Clock(11)), 1.0);
  EXPECT_EQ(learning_rate(options, Clock(12)), 0.5);
  EXPECT_EQ(learning_rate(options, Clock(21)), 0.5);
  EXPECT_EQ(learning_rate(options, Clock(22)), 0.25);
}

TEST(Schedule, CosineFallsToTheFloorOverTheRestOfTheRun) {
  const ScheduleOptions options{
      .kind = ScheduleKind::cosine, .base_rate = 1, .warmup_steps = 10, .floor_rate = 0.2, .total_steps = 110};
  EXPECT_DOUBLE_EQ(learning_rate(options, Clock(10)), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, Clock(60)), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(options, Clock(35)), 0.2 + 0.4 * (1 + std::sqrt(0.5)));
  EXPECT_GT(learning_rate(options, Clock(109)), 0.2);
  EXPECT_EQ(learning_rate(options, Clock(110)), 0.2);
  EXPECT_EQ(learning_rate(options, Clock(10'000)), 0.2);
  for (std::uint64_t c = 10; c < 110; ++c) {
    EXPECT_GT(learning_rate(options, Clock(c)), learning_rate(options, Clock(c + 1)));
  }
}

TEST(Schedule, WarmupMayTakeTheWholeRun) {
  const ScheduleOptions options{.kind = ScheduleKind::cosine, .base_rate = 1, .warmup_steps = 8, .total_steps = 8};
  EXPECT_EQ(learning_rate(options, Clock(7)), 1.0);
  EXPECT_EQ(learning_rate(options, Clock(8)), 0.0);
}

}  // namespace
}  // namespace parley

#include "common/data/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace parley {
namespace {

using Ids = std::vector<std::uint64_t>;

// The samples of a clock in rank order, while the counts are checked on the way.
Ids gather(BatchPlan& plan, Clock clock) {
  Ids all;
  std::uint64_t previous = plan.count(clock);
  for (std::uint32_t r = 0; r < plan.options().workers; ++r) {
    const auto part = plan.samples(clock, Rank(r));
    EXPECT_EQ(part.size(), plan.count(clock, Rank(r)));
    EXPECT_LE(part.size(), previous) << "lower ranks get the larger parts";
    EXPECT_LE(plan.count(clock, Rank(0)) - part.size(), 1U) << "parts differ by at most one";
    previous = part.size();
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all.size(), plan.count(clock));
  return all;
}

// All small cases: whatever the sizes, the workers together do what one worker does with the whole global batch, and an
// epoch visits every sample once.
TEST(BatchPlan, AnyNumberOfWorkersEqualsOne) {
  constexpr std::uint64_t kEpochs = 2;
  for (std::uint64_t samples = 1; samples <= 13; ++samples) {
    for (std::uint64_t batch = 1; batch <= 15; ++batch) {
      BatchPlan one({.samples = samples, .global_batch = batch, .workers = 1, .seed = 5});
      for (std::uint32_t workers = 1; workers <= 8; ++workers) {
        SCOPED_TRACE(testing::Message() << samples << " samples, global batch " << batch << ", " << workers
                                        << " workers");
        BatchPlan plan({.samples = samples, .global_batch = batch, .workers = workers, .seed = 5});
        ASSERT_EQ(plan.total_steps(kEpochs), one.total_steps(kEpochs));
        Ids epoch;
        for (Clock clock; clock.value < plan.total_steps(kEpochs); ++clock) {
          const Ids all = gather(plan, clock);
          ASSERT_EQ(all, gather(one, clock));
          epoch.insert(epoch.end(), all.begin(), all.end());
          if (!plan.is_epoch_end(clock)) {
            ASSERT_EQ(all.size(), batch) << "only the last clock of an epoch may be smaller";
            continue;
          }
          std::sort(epoch.begin(), epoch.end());
          ASSERT_EQ(epoch.size(), samples);
          for (std::uint64_t id = 0; id < samples; ++id) ASSERT_EQ(epoch[id], id);
          ASSERT_EQ(plan.epoch_of(clock.next()), plan.epoch_of(clock) + 1);
          epoch.clear();
        }
        ASSERT_TRUE(epoch.empty()) << "the run ends with an epoch";
      }
    }
  }
}

// Field case S03: 6001 samples over uneven workers and batches; every rank has the same number of clocks by
// construction.
TEST(BatchPlan, TailOfAnEpochIsSplitEvenly) {
  BatchPlan plan({.samples = 6001, .global_batch = 512, .workers = 2, .seed = 1});
  EXPECT_EQ(plan.steps_per_epoch(), 12U);
  EXPECT_EQ(plan.count(Clock(10), Rank(1)), 256U);
  EXPECT_EQ(plan.count(Clock(11), Rank(0)), 185U);
  EXPECT_EQ(plan.count(Clock(11), Rank(1)), 184U);
  EXPECT_EQ(plan.count(Clock(12), Rank(1)), 256U);

  for (const std::uint64_t batch : {1U, 7U, 256U, 6001U}) {
    BatchPlan three({.samples = 6001, .global_batch = 3 * batch, .workers = 3, .seed = 1});
    std::uint64_t visited = 0;
    for (Clock clock; clock.value < three.steps_per_epoch(); ++clock) {
      for (std::uint32_t r = 0; r < 3; ++r) visited += three.count(clock, Rank(r));
    }
    EXPECT_EQ(visited, 6001U) << "batch " << batch;
  }
}

// Field case S28: 64 over three workers are 22, 21 and 21.
TEST(BatchPlan, GlobalBatchSplitsUnevenly) {
  const BatchPlan plan({.samples = 640, .global_batch = 64, .workers = 3, .seed = 1});
  EXPECT_EQ(plan.count(Clock(0), Rank(0)), 22U);
  EXPECT_EQ(plan.count(Clock(0), Rank(1)), 21U);
  EXPECT_EQ(plan.count(Clock(0), Rank(2)), 21U);
}

// Field case S31: fewer samples than workers.
TEST(BatchPlan, ThreeSamplesOverSevenWorkers) {
  BatchPlan plan({.samples = 3, .global_batch = 7 * 32, .workers = 7, .seed = 1});
  EXPECT_EQ(plan.steps_per_epoch(), 1U);
  EXPECT_TRUE(plan.is_epoch_end(Clock(0)));
  for (std::uint32_t r = 0; r < 7; ++r) {
    EXPECT_EQ(plan.count(Clock(0), Rank(r)), r < 3 ? 1U : 0U);
    EXPECT_EQ(plan.samples(Clock(0), Rank(r)).size(), r < 3 ? 1U : 0U);
  }
}

TEST(BatchPlan, NoEpochsAreNoSteps) {
  const BatchPlan plan({.samples = 10, .global_batch = 4, .workers = 2, .seed = 1});
  EXPECT_EQ(plan.total_steps(0), 0U);
  EXPECT_EQ(plan.total_steps(20), 60U);
}

TEST(BatchPlan, BatchLargerThanTheSetIsOneStep) {
  BatchPlan plan({.samples = 10, .global_batch = ~std::uint64_t{0}, .workers = 4, .seed = 1});
  EXPECT_EQ(plan.steps_per_epoch(), 1U);
  EXPECT_EQ(plan.count(Clock(5)), 10U);
  EXPECT_EQ(plan.samples(Clock(5), Rank(3)).size(), 2U);
}

TEST(BatchPlanDeath, RefusesNonsense) {
  EXPECT_DEATH(BatchPlan({.samples = 0, .global_batch = 1, .workers = 1, .seed = 1}), "at least one sample");
  EXPECT_DEATH(BatchPlan({.samples = 1, .global_batch = 0, .workers = 1, .seed = 1}), "global batch");
  EXPECT_DEATH(BatchPlan({.samples = 1, .global_batch = 1, .workers = 0, .seed = 1}), "at least one worker");
  const BatchPlan plan({.samples = 1, .global_batch = 1, .workers = 2, .seed = 1});
  EXPECT_DEATH(static_cast<void>(plan.count(Clock(0), Rank(2))), "rank 2 of 2 workers");
}

}  // namespace
}  // namespace parley

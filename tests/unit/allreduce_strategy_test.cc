// The ranks are threads around a collective in memory, which sums in rank order. The reference is what a server
// computes: weighted_mean() and SliceOptimizer, straight, in one thread.
#include "worker/sync/allreduce_strategy.h"

#include "common/base/error.h"
#include "common/optimizer/mean.h"
#include "tests/support/memory_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace parley {
namespace {

using parley::testing::MemoryGroup;
using parley::testing::run_ranks;
using ::testing::HasSubstr;

// Two parameter groups, a tensor over several slices, a scalar, an empty tensor and a buffer.
const Layout& layout() {
  static const Layout shared(
      {
          {.name = "first.weight", .shape = {40, 3}},
          {.name = "first.bias", .shape = {5}, .group = 1},
          {.name = "norm.mean", .shape = {7}, .kind = TensorKind::buffer},
          {.name = "gain", .shape = {}},
          {.name = "nothing", .shape = {0}},
          {.name = "last.weight", .shape = {2, 9}},
      },
      256);
  return shared;
}

AllreduceStrategyOptions adam() {
  AllreduceStrategyOptions options;
  options.optimizer.kind = OptimizerKind::adam;
  options.groups = {{.weight_decay = 0.01}, {.rate_scale = 2}};
  options.schedule = {.base_rate = 0.1, .warmup_steps = 3};
  return options;
}

std::uint32_t tensor(const std::string& name) { return layout().find(name).value(); }

// What a rank's backward leaves behind at a clock: a pure function, so that the reference can ask for it too.
struct Backward {
  std::uint64_t samples = 0;
  std::vector<std::uint8_t> present;  // a tensor
  std::vector<float> gradient;        // the whole arena, padding zero; buffers: the new value
};

using Plan = std::function<Backward(std::uint32_t rank, std::uint64_t clock)>;

float noise(std::uint64_t seed) {
  seed = (seed + 1) * 0x9E3779B97F4A7C15ULL;
  seed ^= seed >> 29;
  seed *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<float>(static_cast<std::int32_t>(seed >> 32)) * 1e-9F;
}

Backward full_backward(std::uint32_t rank, std::uint64_t clock, std::uint64_t samples) {
  Backward b;
  b.samples = samples;
  b.present.assign(layout().tensors().size(), 1);
  b.gradient.assign(layout().arena_count(), 0.0F);
  for (const Slice& slice : layout().slices()) {
    for (const SlicePart& part : slice.parts) {
      for (std::uint64_t i = 0; i < part.count; ++i) {
        const std::uint64_t at = slice.offset + part.begin + i;
        b.gradient[at] = noise((at * 31 + rank) * 1009 + clock);
      }
    }
  }
  return b;
}

// Garbage where there is no gradient: the arena may hold what an earlier step left.
void drop(Backward& b, const std::string& name) {
  const std::uint32_t index = tensor(name);
  b.present[index] = 0;
  const TensorPlace& place = layout().place(index);
  std::fill_n(b.gradient.begin() + static_cast<std::ptrdiff_t>(place.offset), place.count,
              std::numeric_limits<float>::quiet_NaN());
}

std::vector<std::uint8_t> part_presence(const Slice& slice, const Backward& b) {
  std::vector<std::uint8_t> present;
  for (const SlicePart& part : slice.parts) present.push_back(b.present[part.tensor]);
  return present;
}

std::vector<float> first_weights(std::uint32_t rank) {
  std::vector<float> weights(layout().arena_count(), 0.0F);
  for (std::uint32_t t = 0; t < layout().tensors().size(); ++t) {
    const TensorPlace& place = layout().place(t);
    for (std::uint64_t i = 0; i < place.count; ++i)
      weights[place.offset + i] = noise(place.offset + i + 77 + rank * 100'000);
  }
  return weights;
}

// One rank: arenas and strategy.
struct Worker {
  Worker(Collective& c, std::uint32_t rank)
      : halves{first_weights(rank), std::vector<float>(layout().arena_count())},
        gradient(layout().arena_count()),
        strategy(adam(), layout(), ParameterArena(layout(), halves[0], halves[1]), GradientArena(layout(), gradient),
                 c) {}

  StepResult step(Clock clock, const Backward& b) {
    EXPECT_EQ(strategy.begin_step(clock, b.samples), StepResult::advanced);
    gradient = b.gradient;
    // Backward finishes slices in an order of its own.
    for (std::size_t i = layout().slice_count(); i-- > 0;) {
      const SliceId id(static_cast<std::uint32_t>(i));
      strategy.slice_ready(id, part_presence(layout().slice(id), b));
    }
    return strategy.finish_step(clock);
  }

  std::array<std::vector<float>, 2> halves;
  std::vector<float> gradient;
  AllreduceStrategy strategy;
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float value : values) all.push_back(std::bit_cast<std::uint32_t>(value));
  return all;
}

struct Ending {
  Clock end;
  std::vector<float> weights;
  StrategyStats stats;
};

// Every rank takes `steps` steps, then finishes.
std::vector<Ending> train(std::uint32_t ranks, std::uint64_t steps, const Plan& plan) {
  MemoryGroup group(ranks);
  std::vector<Ending> runs(ranks);
  run_ranks(ranks, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    Clock clock = worker.strategy.start();
    for (; clock.value < steps; ++clock) {
      if (worker.step(clock, plan(rank, clock.value)) == StepResult::stopped) break;
    }
    clock = worker.strategy.finish(clock);
    runs[rank] = {clock, worker.halves[clock.value % 2], worker.strategy.stats()};
  });
  return runs;
}

std::vector<float> reference(std::uint32_t ranks, std::uint64_t steps, const Plan& plan) {
  const AllreduceStrategyOptions options = adam();
  std::vector<float> weights = first_weights(0);
  std::vector<float> next(weights.size());
  std::vector<SliceOptimizer> optimizers;
  for (const Slice& slice : layout().slices())
    optimizers.emplace_back(options.optimizer, options.groups[slice.group], slice);
  for (std::uint64_t clock = 0; clock < steps; ++clock) {
    std::vector<Backward> all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) all.push_back(plan(rank, clock));
    std::vector<std::uint64_t> samples;
    for (const Backward& b : all) samples.push_back(b.samples);
    for (std::uint32_t s = 0; s < layout().slice_count(); ++s) {
      const Slice& slice = layout().slice(SliceId(s));
      std::vector<float> mean(slice.count, 0.0F);
      std::vector<std::uint8_t> present(slice.parts.size(), 0);
      for (std::size_t p = 0; p < slice.parts.size(); ++p) {
        const SlicePart& part = slice.parts[p];
        std::vector<const float*> gradients;
        for (const Backward& b : all) {
          const bool has = b.samples > 0 && b.present[part.tensor] != 0;
          gradients.push_back(has ? b.gradient.data() + slice.offset + part.begin : nullptr);
          if (has) present[p] = 1;
        }
        const auto out = std::span(mean).subspan(part.begin, part.count);
        if (slice.kind == TensorKind::buffer) {
          present[p] = all[0].present[part.tensor];
          std::copy_n(all[0].gradient.data() + slice.offset + part.begin, part.count, out.begin());
        } else if (present[p] != 0) {
          EXPECT_TRUE(weighted_mean(gradients, samples, out));
        }
      }
      optimizers[s].apply(learning_rate(options.schedule, Clock(clock)), present, mean,
                          std::span(weights).subspan(slice.offset, slice.count),
                          std::span(next).subspan(slice.offset, slice.count));
    }
    std::swap(weights, next);
  }
  return weights;
}

void expect_equals_reference(std::uint32_t ranks, std::uint64_t steps, const Plan& plan) {
  const std::vector<Ending> runs = train(ranks, steps, plan);
  const std::vector<float> expected = reference(ranks, steps, plan);
  for (const Ending& run : runs) {
    EXPECT_EQ(run.end, Clock(steps));
    EXPECT_EQ(bits(run.weights), bits(expected));
  }
}

TEST(AllreduceStrategy, EqualCountsGiveTheServersBits) {
  for (const std::uint32_t ranks : {1U, 2U, 3U}) {
    expect_equals_reference(ranks, 12,
                            [](std::uint32_t rank, std::uint64_t clock) { return full_backward(rank, clock, 16); });
  }
}

TEST(AllreduceStrategy, UnequalCountsAndEmptySharesGiveTheServersBits) {
  for (const std::uint32_t ranks : {2U, 3U}) {
    expect_equals_reference(ranks, 12, [](std::uint32_t rank, std::uint64_t clock) {
      // 7, 10, 13 samples; at every third clock one of the ranks has none.
      const std::uint64_t samples = clock % 3 == 2 && clock / 3 % 3 == rank ? 0 : 7 + 3 * rank;
      Backward b = full_backward(rank, clock, samples);
      if (samples == 0) {
        for (const TensorSpec& t : layout().tensors())
          if (t.kind == TensorKind::parameter) drop(b, t.name);
      }
      return b;
    });
  }
}

TEST(AllreduceStrategy, AClockWithoutAnySampleChangesNothing) {
  const std::vector<Ending> runs =
      train(2, 1, [](std::uint32_t rank, std::uint64_t clock) { return full_backward(rank, clock, 0); });
  std::vector<float> expected = first_weights(0);
  const TensorPlace& mean = layout().place(tensor("norm.mean"));
  const std::vector<float> buffers = full_backward(0, 0, 0).gradient;
  std::copy_n(buffers.begin() + static_cast<std::ptrdiff_t>(mean.offset), mean.count,
              expected.begin() + static_cast<std::ptrdiff_t>(mean.offset));
  EXPECT_EQ(bits(runs[0].weights), bits(expected));
  EXPECT_EQ(bits(runs[1].weights), bits(expected));
}

TEST(AllreduceStrategy, ATensorNobodyTouchedIsSkippedAndOneThatSomebodyTouchedIsNot) {
  expect_equals_reference(2, 12, [](std::uint32_t rank, std::uint64_t clock) {
    Backward b = full_backward(rank, clock, 5 + rank);
    if (clock % 2 == 0) drop(b, "first.weight");
    if (rank == clock % 2) drop(b, "gain");
    if (clock % 3 == 1) drop(b, "norm.mean");
    return b;
  });
}

Backward plain(std::uint32_t rank, std::uint64_t clock) { return full_backward(rank, clock, 8); }

TEST(AllreduceStrategy, InitialWeightsAreThoseOfRankZero) {
  for (const Ending& run : train(3, 0, plain)) {
    EXPECT_EQ(run.end, Clock(0));
    EXPECT_EQ(bits(run.weights), bits(first_weights(0)));
  }
}

TEST(AllreduceStrategy, AStopThatOneRankAsksForComesToAllAtTheSameClock) {
  for (const std::uint32_t asker : {0U, 2U}) {
    MemoryGroup group(3);
    std::array<std::vector<float>, 3> weights;
    run_ranks(3, [&](std::uint32_t rank) {
      Worker worker(group.at(rank), rank);
      Clock clock = worker.strategy.start();
      for (;; ++clock) {
        if (rank == asker && clock == Clock(1)) worker.strategy.request_stop(Clock(4));
        if (worker.step(clock, plain(rank, clock.value)) == StepResult::stopped) break;
      }
      EXPECT_EQ(clock, Clock(4));
      EXPECT_EQ(worker.strategy.finish(clock), Clock(4));
      weights[rank] = worker.halves[0];
    });
    for (const auto& w : weights) EXPECT_EQ(bits(w), bits(reference(3, 4, plain)));
  }
}

TEST(AllreduceStrategy, AStopAskedForInThePastComesAtTheNextStep) {
  MemoryGroup group(2);
  run_ranks(2, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    worker.strategy.start();
    EXPECT_EQ(worker.step(Clock(0), plain(rank, 0)), StepResult::advanced);
    if (rank == 1) worker.strategy.request_stop(Clock(0));
    EXPECT_EQ(worker.step(Clock(1), plain(rank, 1)), StepResult::stopped);
    EXPECT_EQ(worker.strategy.finish(Clock(1)), Clock(1));
  });
}

// Rank r has data for 3 + 2 r clocks; who has none left goes on with the others, without samples.
TEST(AllreduceStrategy, ARankWhoseDataEndsHoldsNobodyUpAndEndsWithTheSameWeights) {
  MemoryGroup group(3);
  const auto steps_of = [](std::uint32_t rank) { return 3 + 2 * rank; };
  std::array<std::vector<float>, 3> weights;
  run_ranks(3, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    Clock clock = worker.strategy.start();
    for (; clock.value < steps_of(rank); ++clock)
      EXPECT_EQ(worker.step(clock, plain(rank, clock.value)), StepResult::advanced);
    EXPECT_EQ(worker.strategy.finish(clock), Clock(7));
    weights[rank] = worker.halves[1];
  });
  const std::vector<float> expected = reference(3, 7, [&](std::uint32_t rank, std::uint64_t clock) {
    Backward b = plain(rank, clock);
    if (clock < steps_of(rank)) return b;
    b.samples = 0;
    if (rank == 0) b.present.assign(b.present.size(), 0);  // Its buffers stay as they were.
    return b;
  });
  for (const auto& w : weights) EXPECT_EQ(bits(w), bits(expected));
}

// What every rank of the group throws in the step of clock 2, and that it leaves the weights alone.
std::vector<std::string> failures(std::uint32_t ranks, const Plan& plan) {
  MemoryGroup group(ranks);
  std::vector<std::string> texts(ranks);
  run_ranks(ranks, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    worker.strategy.start();
    for (std::uint64_t clock = 0; clock < 2; ++clock)
      EXPECT_EQ(worker.step(Clock(clock), plan(rank, clock)), StepResult::advanced);
    const auto before = worker.halves;
    try {
      worker.step(Clock(2), plan(rank, 2));
    } catch (const RunError& error) {
      texts[rank] = error.what();
    }
    EXPECT_EQ(bits(worker.halves[0]), bits(before[0]));
    EXPECT_EQ(bits(worker.halves[1]), bits(before[1]));
  });
  return texts;
}

Backward with_value(std::uint32_t rank, std::uint64_t clock, const std::string& name, float value) {
  Backward b = full_backward(rank, clock, 4 + rank);
  if (clock == 2) b.gradient[layout().place(tensor(name)).offset] = value;
  return b;
}

TEST(AllreduceStrategy, ANonFiniteGradientStopsAllRanksAlikeBeforeAnyWeightChanges) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto texts = failures(3, [&](std::uint32_t rank, std::uint64_t clock) {
      return rank == 1 ? with_value(rank, clock, "first.bias", value) : plain(rank, clock);
    });
    EXPECT_THAT(texts[0], HasSubstr("worker 1 at clock 2 is not finite in tensor 'first.bias'"));
    EXPECT_EQ(texts[1], texts[0]);
    EXPECT_EQ(texts[2], texts[0]);
  }
}

TEST(AllreduceStrategy, AnOverflowingSumOfFiniteGradientsStopsAllRanksAlike) {
  const auto texts = failures(2, [](std::uint32_t rank, std::uint64_t clock) {
    return with_value(rank, clock, "gain", std::numeric_limits<float>::max() / 5);
  });
  EXPECT_THAT(texts[0], HasSubstr("mean gradient at clock 2 is not finite in tensor 'gain'"));
  EXPECT_EQ(texts[1], texts[0]);
}

TEST(AllreduceStrategy, ADeadPeerIsAnErrorOfTheStep) {
  MemoryGroup group(2);
  run_ranks(2, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    worker.strategy.start();
    worker.step(Clock(0), plain(rank, 0));
    if (rank == 1) {
      group.kill(1);
      return;
    }
    EXPECT_THROW(worker.step(Clock(1), plain(rank, 1)), RunError);
  });
}

// A trainer that fails in the middle of its backward must be able to leave.
TEST(AllreduceStrategy, AnAbandonedStepDoesNotHoldTheDestructor) {
  MemoryGroup group(2);
  run_ranks(2, [&](std::uint32_t rank) {
    Worker worker(group.at(rank), rank);
    worker.strategy.start();
    worker.strategy.begin_step(Clock(0), 8);
  });
}

TEST(AllreduceStrategy, CountsTheBytesOfGradientsAndBuffers) {
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  for (const Slice& slice : layout().slices())
    (slice.kind == TensorKind::buffer ? buffers : parameters) += slice.bytes();
  const std::vector<Ending> runs = train(2, 3, plain);
  EXPECT_EQ(runs[0].stats.bytes_pushed, 3 * (parameters + buffers));
  EXPECT_EQ(runs[0].stats.bytes_pulled, 3 * parameters);
  EXPECT_EQ(runs[1].stats.bytes_pushed, 3 * parameters);
  EXPECT_EQ(runs[1].stats.bytes_pulled, 3 * (parameters + buffers));
  EXPECT_EQ(train(1, 3, plain)[0].stats.bytes_pushed, 0U);
}

}  // namespace
}  // namespace parley

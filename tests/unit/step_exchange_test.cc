#include "worker/sync/step_exchange.h"

#include "tests/support/memory_collective.h"

#include <gtest/gtest.h>

namespace parley {
namespace {

using parley::testing::MemoryGroup;
using parley::testing::run_ranks;

TEST(StepExchange, OpeningGathersCountsExactlyAndWishes) {
  const std::vector<std::uint64_t> samples{(1ULL << 48) - 1, 0, (1ULL << 24) + 1};
  MemoryGroup group(3);
  run_ranks(3, [&](std::uint32_t rank) {
    StepExchange exchange(group.at(rank), 4);
    const StepOpening& opening = exchange.open(samples[rank], false, rank == 1);
    EXPECT_EQ(opening.samples, samples);
    EXPECT_FALSE(opening.stop);
    EXPECT_EQ(opening.finished, 1U);
    EXPECT_TRUE(exchange.open(1, rank == 2, true).stop);
    EXPECT_EQ(opening.finished, 3U);
    EXPECT_EQ(opening.samples, (std::vector<std::uint64_t>{1, 1, 1}));
  });
}

TEST(StepExchange, ClosingGathersPresenceFaultsAndTimes) {
  MemoryGroup group(2);
  run_ranks(2, [&](std::uint32_t rank) {
    StepExchange exchange(group.at(rank), 3);
    std::vector<std::uint8_t> present{0, 1, 0};
    if (rank == 1) present = {1, 1, 0};
    const StepClosing& closing = exchange.close(present, rank == 1 ? std::optional(0U) : std::nullopt, 0.5 + rank);
    EXPECT_EQ(closing.present, (std::vector<std::uint8_t>{1, 1, 0}));
    EXPECT_EQ(closing.non_finite, (std::vector<std::optional<std::uint32_t>>{std::nullopt, 0}));
    EXPECT_EQ(closing.busy_seconds, (std::vector<double>{0.5, 1.5}));
    EXPECT_EQ(exchange.close(std::vector<std::uint8_t>{0, 0, 0}, std::nullopt, 0).non_finite,
              (std::vector<std::optional<std::uint32_t>>(2)));
  });
}

}  // namespace
}  // namespace parley

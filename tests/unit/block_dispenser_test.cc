#include "common/data/block_dispenser.h"

#include "common/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace parley {
namespace {

constexpr Rank kAnn{0};
constexpr Rank kBob{1};

TEST(BlockDispenser, HandsOutAnEpochInOrder) {
  BlockDispenser data({.samples = 5, .block_samples = 2, .epochs = 2});
  std::optional<Block> held;
  std::vector<Block> seen;
  while ((held = data.next(kAnn, held))) seen.push_back(*held);
  EXPECT_EQ(seen, (std::vector<Block>{{0, 0, 2}, {0, 2, 4}, {0, 4, 5}, {1, 0, 2}, {1, 2, 4}, {1, 4, 5}}));
  EXPECT_FALSE(data.has_unfinished());
}

TEST(BlockDispenser, NoEpochsAreNoData) {
  BlockDispenser data({.samples = 5, .block_samples = 2, .epochs = 0});
  EXPECT_FALSE(data.has_unfinished());
  EXPECT_EQ(data.next(kAnn, std::nullopt), std::nullopt);
}

TEST(BlockDispenser, OneRankMayBeAnEpochAhead) {
  BlockDispenser data({.samples = 4, .block_samples = 2, .epochs = 2});
  const auto ann = data.next(kAnn, std::nullopt);
  const auto bob = data.next(kBob, std::nullopt);
  EXPECT_EQ(data.next(kBob, bob), (Block{1, 0, 2}));
  EXPECT_EQ(ann, (Block{0, 0, 2}));
}

TEST(BlockDispenser, RepeatedRequestsGetTheSameAnswer) {
  BlockDispenser data({.samples = 6, .block_samples = 2, .epochs = 1});
  const auto first = data.next(kAnn, std::nullopt);
  EXPECT_EQ(data.next(kAnn, std::nullopt), first);
  const auto second = data.next(kAnn, first);
  EXPECT_EQ(data.next(kAnn, first), second) << "the reply was lost and the request came again";
  EXPECT_EQ(data.next(kAnn, std::nullopt), second) << "a new life takes over what its former one held";
  const auto third = data.next(kAnn, second);
  EXPECT_EQ(data.next(kAnn, third), std::nullopt);
  EXPECT_EQ(data.next(kAnn, third), std::nullopt);
}

TEST(BlockDispenser, AReleasedBlockGoesFirst) {
  BlockDispenser data({.samples = 6, .block_samples = 2, .epochs = 1});
  const auto lost = data.next(kAnn, std::nullopt);
  const auto bob = data.next(kBob, std::nullopt);
  data.release(kAnn);
  data.release(kAnn);
  EXPECT_EQ(data.next(kBob, bob), lost);
  EXPECT_EQ(data.next(kBob, lost), (Block{0, 4, 6}));
}

// A rank that finds nothing left does not wait for the others; what they lose later stays for who asks again.
TEST(BlockDispenser, ABlockLostAtTheEndIsNotForgotten) {
  BlockDispenser data({.samples = 2, .block_samples = 2, .epochs = 1});
  const auto lost = data.next(kAnn, std::nullopt);
  EXPECT_EQ(data.next(kBob, std::nullopt), std::nullopt);
  EXPECT_TRUE(data.has_unfinished());
  data.release(kAnn);
  EXPECT_TRUE(data.has_unfinished());
  EXPECT_EQ(data.next(kAnn, std::nullopt), lost);
  EXPECT_EQ(data.next(kAnn, lost), std::nullopt);
  EXPECT_FALSE(data.has_unfinished());
}

// Random schedules of asking, repeating, dying and restoring, against a count of how often each position was finished.
TEST(BlockDispenser, EverySampleIsFinishedOnceAnEpoch) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(seed, 0);
    const BlockDispenserOptions options{
        .samples = 1 + random.below(12), .block_samples = 1 + random.below(5), .epochs = random.below(4)};
    const std::uint64_t workers = 1 + random.below(4);
    BlockDispenser data(options);
    std::map<Rank, std::optional<Block>> working;  // what each rank believes it holds
    std::vector<int> finished(options.epochs * options.samples, 0);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    for (int step = 0; data.has_unfinished(); ++step) {
      ASSERT_LT(step, 10000);
      const Rank rank(static_cast<std::uint32_t>(random.below(workers)));
      auto& held = working[rank];
      const std::uint64_t event = random.below(10);
      if (event == 0) {  // it dies, is not replaced at once, and starts again later
        data.release(rank);
        held.reset();
      } else if (event == 1) {  // it dies and its next life asks at once
        held.reset();
      } else if (event == 2) {  // the coordinator is restored from its state
        auto restored = BlockDispenser::restore(options, data.state());
        ASSERT_TRUE(restored) << restored.error().message;
        data = std::move(*restored);
      } else {
        const auto done = held;
        held = data.next(rank, done);
        if (event == 3) {
          ASSERT_EQ(data.next(rank, done), held) << "a repeat";
        }
        if (done && held != done) {
          for (auto p = done->begin; p < done->end; ++p) ++finished[done->epoch * options.samples + p];
        }
        if (held) {
          ASSERT_LT(held->begin, held->end);
          ASSERT_LE(held->end, options.samples);
          ASSERT_LE(held->end - held->begin, options.block_samples);
        }
      }
    }
    for (const int n : finished) ASSERT_EQ(n, 1);
  }
}

TEST(BlockDispenser, RefusesAStateThatDoesNotFit) {
  const BlockDispenserOptions options{.samples = 4, .block_samples = 2, .epochs = 2};
  const auto fault = [&](const BlockDispenserState& state) {
    const auto restored = BlockDispenser::restore(options, state);
    return restored ? std::string() : restored.error().message;
  };
  EXPECT_EQ(fault({.epoch = 2, .position = 0, .held = {}, .returned = {}}), "");
  EXPECT_EQ(fault({.epoch = 1, .position = 2, .held = {{kBob, {1, 0, 2}}}, .returned = {{0, 2, 4}}}), "");
  EXPECT_EQ(fault({.epoch = 3, .position = 0, .held = {}, .returned = {}}),
            "data position is epoch 3 sample 0, the run has 2 epochs of 4 samples");
  EXPECT_EQ(fault({.epoch = 0, .position = 4, .held = {}, .returned = {}}),
            "data position is epoch 0 sample 4, the run has 2 epochs of 4 samples");
  EXPECT_EQ(fault({.epoch = 1, .position = 2, .held = {{kBob, {1, 2, 4}}}, .returned = {}}),
            "data block [2, 4) of epoch 1 was never handed out");
  EXPECT_EQ(fault({.epoch = 1, .position = 2, .held = {{kBob, {0, 2, 5}}}, .returned = {}}),
            "data block [2, 5) of epoch 0 was never handed out");
  EXPECT_EQ(fault({.epoch = 1, .position = 2, .held = {{kBob, {0, 1, 3}}}, .returned = {{0, 2, 4}}}),
            "data blocks [1, 3) and [2, 4) of epoch 0 overlap");
}

}  // namespace
}  // namespace parley

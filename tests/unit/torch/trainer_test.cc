#include "worker/training/trainer.h"

#include "common/base/random.h"
#include "common/layout/weights_digest.h"
#include "common/optimizer/mean.h"
#include "tests/unit/torch/bound_model.h"
#include "tests/unit/torch/tensor_model.h"
#include "worker/models/registry.h"
#include "worker/sync/local_strategy.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Images of 2 x 3 whose label says which pixel is brightest: easy to learn.
class BrightPixels final : public Dataset {
 public:
  explicit BrightPixels(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  SampleShape shape() const override { return {1, 2, 3}; }
  std::uint32_t classes() const override { return 6; }
  void gather(std::span<const std::uint64_t> ids, std::span<float> inputs,
              std::span<std::int64_t> labels) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      RandomStream random(17, ids[i]);
      const std::uint64_t label = random.below(6);
      for (std::size_t pixel = 0; pixel < 6; ++pixel)
        inputs[i * 6 + pixel] = static_cast<float>(random.uniform()) + (pixel == label ? 1 : 0);
      labels[i] = static_cast<std::int64_t>(label);
    }
  }

 private:
  std::uint64_t size_;
};

struct Settings {
  std::uint64_t samples = 120;
  std::uint64_t global_batch = 16;
  std::uint32_t workers = 1;
  Rank share{0};  // whose part of each batch
  std::uint64_t epochs = 4;
  TrainerOptions trainer;
  bool evaluates = true;
  bool dropout = false;
};

std::unique_ptr<Model> dropout_model() {
  at::manual_seed(4);
  const at::Tensor weight = at::zeros({6, 6}).normal_().set_requires_grad(true);
  return std::make_unique<TensorModel>(std::vector<NamedTensor>{{"weight", weight}}, std::vector<NamedTensor>{},
                                       [weight](const at::Tensor& input, bool training) {
                                         return at::linear(at::dropout(input.flatten(1), 0.5, training), weight);
                                       });
}

// One rank that trains with the local strategy.
struct TrainedRank {
  explicit TrainedRank(const Settings& settings, MetricsWriter* metrics = nullptr)
      : train(settings.samples),
        model(settings.dropout
                  ? dropout_model()
                  : make_model({.type = "mlp", .input = {1, 2, 3}, .classes = 6, .hidden = {12}, .seed = 5})),
        bound(*model, 128),
        strategy({.optimizer = {.kind = OptimizerKind::sgd, .momentum = 0.9},
                  .groups = {{}},
                  .schedule = {.kind = ScheduleKind::constant, .base_rate = 0.2}},
                 bound.layout, bound.arenas.parameters(), bound.arenas.gradients()),
        tracker(bound.binding, strategy),
        batches({.samples = settings.samples,
                 .global_batch = settings.global_batch,
                 .workers = settings.workers,
                 .seed = 9},
                settings.epochs, settings.share),
        loader(train, at::kCPU),
        evaluator(*model, test, at::kCPU, 32) {
    at::set_num_threads(1);  // such small work only loses by more
    Trainer trainer(settings.trainer, {.model = *model,
                                       .binding = bound.binding,
                                       .tracker = tracker,
                                       .strategy = strategy,
                                       .batches = batches,
                                       .loader = loader,
                                       .evaluator = settings.evaluates ? &evaluator : nullptr,
                                       .metrics = metrics});
    result = trainer.run();
  }

  std::string digest() const { return weights_digest(bound.layout, bound.arenas.parameters().half(result.final_half)); }

  BrightPixels train;
  BrightPixels test{64};
  std::unique_ptr<Model> model;
  BoundModel bound;
  LocalStrategy strategy;
  GradientTracker tracker;
  PlannedBatches batches;
  BatchLoader loader;
  Evaluator evaluator;
  TrainerResult result;
};

TEST(Trainer, LearnsAndRepeatsItselfBitForBit) {
  const TrainedRank run(Settings{.epochs = 20});
  EXPECT_EQ(run.result.end, Clock(160));  // 7 batches of 16 and one of 8 an epoch
  EXPECT_EQ(run.result.samples, 2400U);
  EXPECT_EQ(run.result.group_samples, 2400U);
  EXPECT_GE(run.result.evaluation->accuracy, 0.9);
  EXPECT_GT(run.result.samples_per_second(), 0);
  EXPECT_EQ(TrainedRank(Settings{.epochs = 20}).digest(), run.digest());
}

TEST(Trainer, EvaluationDoesNotChangeTraining) {
  const Settings with{.dropout = true};
  Settings without = with;
  without.evaluates = false;
  EXPECT_EQ(TrainedRank(with).digest(), TrainedRank(without).digest());
}

TEST(Trainer, DropoutIsAFunctionOfSeedRankAndClock) {
  // The one sample is each rank's share alone, so only the masks can differ.
  const auto digest = [](Rank rank, std::uint64_t seed) {
    Settings settings{.samples = 1, .global_batch = 1, .epochs = 6, .dropout = true};
    settings.trainer = {.rank = rank, .seed = seed};
    return TrainedRank(settings).digest();
  };
  EXPECT_EQ(digest(Rank(0), 9), digest(Rank(0), 9));
  EXPECT_NE(digest(Rank(0), 9), digest(Rank(1), 9));
  EXPECT_NE(digest(Rank(0), 9), digest(Rank(0), 8));
}

TEST(Trainer, NoEpochsEvaluatesTheInitialWeights) {
  const TrainedRank run(Settings{.epochs = 0});
  EXPECT_EQ(run.result.end, Clock(0));
  EXPECT_EQ(run.result.group_samples, 0U);
  EXPECT_TRUE(run.result.evaluation.has_value());
  const auto untouched = make_model({.type = "mlp", .input = {1, 2, 3}, .classes = 6, .hidden = {12}, .seed = 5});
  BoundModel reference(*untouched, 128);
  EXPECT_EQ(run.digest(), weights_digest(reference.layout, reference.arenas.parameters().half(Clock(0))));
}

TEST(Trainer, StopsAtMaxSteps) {
  Settings settings;
  settings.trainer.max_steps = 5;
  const TrainedRank run(settings);
  EXPECT_EQ(run.result.end, Clock(5));
  EXPECT_EQ(run.result.group_samples, 80U);
}

TEST(Trainer, StopsWhenTheAccuracyIsReachedOrTheTimeIsUp) {
  Settings settings{.epochs = 50};
  settings.trainer.target_accuracy = 0.01;
  EXPECT_EQ(TrainedRank(settings).result.end, Clock(8));  // after the first epoch
  settings.trainer = {.max_seconds = std::chrono::nanoseconds(1)};
  EXPECT_EQ(TrainedRank(settings).result.end, Clock(0));
}

TEST(Trainer, ARankWithoutSamplesTakesPart) {
  // Three samples over seven ranks: the last one never has any.
  const TrainedRank run(Settings{.samples = 3, .global_batch = 7, .workers = 7, .share = Rank(6)});
  EXPECT_EQ(run.result.end, Clock(4));
  EXPECT_EQ(run.result.samples, 0U);
  EXPECT_EQ(run.result.group_samples, 12U);
}

TEST(Trainer, WritesALineAStep) {
  const auto path = std::filesystem::path(testing::TempDir()) / "trainer_metrics.jsonl";
  std::filesystem::remove(path);
  Settings settings;
  settings.trainer.max_steps = 3;
  {
    MetricsWriter metrics(path, 1);
    const TrainedRank run(settings, &metrics);
  }
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[2], HasSubstr("\"clock\":2,\"epoch\":0,\"samples\":16,\"loss\":"));
}

// S28: what each rank computes on its share, averaged by samples, is what one worker computes on all of them.
TEST(Trainer, TheMeanOfTheSharesIsTheGradientOfTheBigBatch) {
  const BrightPixels data(64);
  const auto model = make_model({.type = "mlp", .input = {1, 2, 3}, .classes = 6, .hidden = {12}, .seed = 5});
  BoundModel bound(*model);
  BatchLoader loader(data, at::kCPU);
  const auto gradient = [&](std::span<const std::uint64_t> ids) {
    bound.binding.clear_gradients();
    const auto [inputs, labels] = loader.load(ids);
    at::cross_entropy_loss(model->forward(inputs), labels).backward();
    const auto values = bound.arenas.gradients().values();
    return std::vector<float>(values.begin(), values.end());
  };
  for (const std::uint32_t workers : {2U, 3U, 4U, 7U}) {
    PlannedBatches whole({.samples = 64, .global_batch = 64, .workers = 1, .seed = 2}, 1, Rank(0));
    const std::vector<float> expected = gradient(whole.next(Clock(0))->ids);
    std::vector<std::vector<float>> shares;
    std::vector<const float*> pointers;
    std::vector<std::uint64_t> samples;
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      PlannedBatches part({.samples = 64, .global_batch = 64, .workers = workers, .seed = 2}, 1, Rank(rank));
      const auto batch = part.next(Clock(0));
      samples.push_back(batch->ids.size());
      shares.push_back(gradient(batch->ids));
    }
    for (const auto& share : shares) pointers.push_back(share.data());
    std::vector<float> mean(expected.size());
    ASSERT_TRUE(weighted_mean(pointers, samples, mean));
    for (std::size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(mean[i], expected[i], 1e-6) << i;
  }
}

// Hands out the blocks of a dispenser, and remembers how many requests were ahead of their answers.
class LocalBlocks final : public BlockSource {
 public:
  explicit LocalBlocks(const BlockDispenserOptions& options) : dispenser_(options) {}
  void ask() override {
    EXPECT_FALSE(open_);
    open_ = true;
    held_ = dispenser_.next(Rank(0), held_);
  }
  std::optional<Block> take() override {
    EXPECT_TRUE(open_);
    open_ = false;
    return held_;
  }
  bool open() const { return open_; }

 private:
  BlockDispenser dispenser_;
  std::optional<Block> held_;
  bool open_ = false;
};

TEST(BatchSource, BlocksOnDemandCoverEveryEpochOnce) {
  LocalBlocks blocks({.samples = 10, .block_samples = 4, .epochs = 2});
  BlockBatches batches(blocks, 3, 10, 2);
  std::vector<int> seen(10);
  std::vector<std::uint64_t> epochs;
  Clock clock;
  while (const auto batch = batches.next(clock)) {
    EXPECT_TRUE(blocks.open());  // the next one is on its way while this one is computed
    for (const std::uint64_t id : batch->ids) ++seen[id];
    epochs.push_back(batch->epoch);
    EXPECT_EQ(batch->taken_after - batch->taken_before, batch->ids.size());
    ++clock;
    EXPECT_EQ(batches.expected_steps(clock), (clock.value * 20 + batch->taken_after - 1) / batch->taken_after);
  }
  EXPECT_THAT(seen, testing::Each(2));
  EXPECT_THAT(epochs, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(BatchSource, ARestartedRankContinuesItsPlanAtAnyClock) {
  const BatchPlanOptions options{.samples = 50, .global_batch = 8, .workers = 2, .seed = 1};
  PlannedBatches whole(options, 3, Rank(1));
  PlannedBatches later(options, 3, Rank(1));
  std::vector<std::uint64_t> expected;
  for (Clock clock; clock.value <= 12; ++clock) {
    const auto ids = whole.next(clock)->ids;
    expected.assign(ids.begin(), ids.end());
  }
  const auto batch = later.next(Clock(12));
  EXPECT_EQ(std::vector<std::uint64_t>(batch->ids.begin(), batch->ids.end()), expected);
  EXPECT_EQ(batch->epoch, 1U);
  EXPECT_EQ(batch->taken_before, 90U);  // 50 of the first epoch and five full clocks
  EXPECT_EQ(batch->taken_after, 98U);
  EXPECT_FALSE(later.next(Clock(21)).has_value());
}

}  // namespace
}  // namespace parley

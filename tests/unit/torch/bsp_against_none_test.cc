// Several workers must be one worker with the big batch. Free-running float32 runs drift apart honestly, so agreement
// is shown step by step: each step starts from the same weights and optimizer slots, and one step of a server on the
// workers' gradients is compared with one optimizer step on the gradient of the whole batch.
#include "common/layout/placement.h"
#include "common/optimizer/optimizer.h"
#include "server/core/dense_store.h"
#include "tests/unit/torch/bound_model.h"
#include "worker/models/registry.h"

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace parley {
namespace {

constexpr std::uint64_t kBatch = 24;

struct Samples {
  at::Tensor inputs = at::randn({96, 1, 28, 28});
  at::Tensor labels = at::randint(10, {96}, at::kLong);
};

struct Replica {
  Replica()
      : model(make_model({.type = "lenet5", .input = {1, 28, 28}, .classes = 10, .hidden = {}, .seed = 5})),
        bound(*model, 4096) {}

  // The mean gradient over samples [begin, begin + count) at the given weights (arena order), into the gradient arena.
  void compute(const Samples& data, std::int64_t begin, std::int64_t count, std::span<const float> weights) {
    std::ranges::copy(weights, bound.arenas.parameters().half(Clock(0)).begin());
    bound.binding.select(Clock(0));
    bound.binding.clear_gradients();
    const auto loss = at::cross_entropy_loss(model->forward(data.inputs.narrow(0, begin, count)),
                                             data.labels.narrow(0, begin, count));
    loss.backward();
  }

  std::unique_ptr<Model> model;
  BoundModel bound;
};

// The servers' side: all slices in one store.
struct Servers {
  Servers(const StoreOptions& options, const Layout& model_layout)
      : layout(model_layout), placement(layout, 1), store(options, layout, placement.slices(ShardId(0))) {}

  std::vector<float> weights() const {
    std::vector<float> all(layout.arena_count());
    for (const SliceId id : placement.slices(ShardId(0)))
      std::ranges::copy(store.values(id), all.begin() + static_cast<std::ptrdiff_t>(layout.slice(id).offset));
    return all;
  }
  void step(Clock clock, std::vector<Replica>& workers, const std::vector<std::uint64_t>& counts) {
    for (const SliceId id : placement.slices(ShardId(0))) {
      const std::vector<std::uint8_t> present(layout.slice(id).parts.size(), 1);
      std::vector<Contribution> pushes;
      for (std::uint32_t rank = 0; rank < workers.size(); ++rank)
        pushes.push_back({Rank(rank), counts[rank], present, workers[rank].bound.arenas.gradients().slice(id)});
      ASSERT_FALSE(store.gather(id, pushes).has_value());
      store.apply(id, clock, 1.0, 1.0F);
    }
  }

  const Layout& layout;
  Placement placement;
  DenseStore store;
};

StoreOptions momentum() {
  StoreOptions options;
  options.optimizer.momentum = 0.9;
  options.groups = {{5e-3, 1.0}};
  options.schedule.base_rate = 0.05;
  return options;
}

// The largest difference within a tensor, relative to the tensor's largest value.
double difference(const Layout& layout, std::span<const float> ours, std::span<const float> theirs) {
  double worst = 0;
  for (std::uint32_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const TensorPlace& place = layout.place(tensor);
    double scale = 1e-12;
    double gap = 0;
    for (std::uint64_t i = place.offset; i < place.offset + place.count; ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(theirs[i])));
      gap = std::max(gap, std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
    }
    worst = std::max(worst, gap / scale);
  }
  return worst;
}

void initialize(Servers& servers, const Replica& replica) {
  for (const SliceId id : servers.placement.slices(ShardId(0)))
    servers.store.initialize(id, replica.bound.arenas.parameters().slice(id, Clock(0)));
}

// One step of one worker alone from the servers' present weights and slots.
std::vector<float> step_alone(const Servers& servers, const StoreOptions& options, const GradientArena& gradients) {
  std::vector<float> next = servers.weights();
  for (const SliceId id : servers.placement.slices(ShardId(0))) {
    const Slice& slice = servers.layout.slice(id);
    const auto slot = servers.store.optimizer(id).slot(0);
    std::vector<float> momentum_buffer(slot.begin(), slot.end());
    for (const SlicePart& part : slice.parts) {
      const auto weights = std::span(next).subspan(slice.offset + part.begin, part.count);
      const auto scalars = step_scalars(options.optimizer, options.groups[0], options.schedule.base_rate, 1);
      apply(options.optimizer, scalars, gradients.slice(id).subspan(part.begin, part.count), weights, weights,
            {std::span(momentum_buffer).subspan(part.begin, part.count)});
    }
  }
  return next;
}

void compare_steps(const std::vector<std::uint64_t>& counts, std::uint64_t steps) {
  at::manual_seed(1);
  const Samples data;
  const StoreOptions options = momentum();
  std::vector<Replica> workers(counts.size());
  Replica alone;
  Servers servers(options, alone.bound.layout);
  initialize(servers, alone);
  for (std::uint64_t clock = 0; clock < steps; ++clock) {
    const std::vector<float> weights = servers.weights();
    auto begin = static_cast<std::int64_t>(clock * kBatch % 72);
    alone.compute(data, begin, kBatch, weights);
    const std::vector<float> expected = step_alone(servers, options, alone.bound.arenas.gradients());
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      workers[rank].compute(data, begin, static_cast<std::int64_t>(counts[rank]), weights);
      begin += static_cast<std::int64_t>(counts[rank]);
    }
    servers.step(Clock(clock), workers, counts);
    ASSERT_LE(difference(servers.layout, servers.weights(), expected), 1e-6) << "clock " << clock;
  }
}

TEST(BspAgainstNone, AgreesStepByStepFor300StepsOfTwoEqualWorkers) { compare_steps({12, 12}, 300); }

TEST(BspAgainstNone, AgreesStepByStepWithUnevenBatches) { compare_steps({11, 6, 7}, 60); }

TEST(BspAgainstNone, StaysWithin1e5ForTwentyFreeSteps) {
  at::manual_seed(2);
  const Samples data;
  StoreOptions options = momentum();
  options.optimizer.momentum = 0;
  std::vector<Replica> pair(2);
  std::vector<Replica> single(1);
  Servers servers(options, pair[0].bound.layout);
  Servers reference(options, single[0].bound.layout);
  initialize(servers, pair[0]);
  initialize(reference, single[0]);
  for (std::uint64_t clock = 0; clock < 20; ++clock) {
    const auto begin = static_cast<std::int64_t>(clock * kBatch % 72);
    pair[0].compute(data, begin, 12, servers.weights());
    pair[1].compute(data, begin + 12, 12, servers.weights());
    single[0].compute(data, begin, 24, reference.weights());
    servers.step(Clock(clock), pair, {12, 12});
    reference.step(Clock(clock), single, {24});
  }
  EXPECT_LE(difference(servers.layout, servers.weights(), reference.weights()), 1e-5);
}

}  // namespace
}  // namespace parley

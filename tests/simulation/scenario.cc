#include "tests/simulation/scenario.h"

#include "common/base/random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace parley::simulation {
namespace {

std::uint64_t hash(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0, std::uint64_t d = 0, std::uint64_t e = 0) {
  return mix64(mix64(mix64(mix64(mix64(a) ^ b) ^ c) ^ d) ^ e);
}

// Uniform in [-1, 1], a multiple of 2^-20.
float unit(std::uint64_t h) {
  return static_cast<float>(static_cast<std::int64_t>(h % 2097153) - 1048576) / 1048576.0F;
}

std::vector<TensorSpec> draw_tensors(RandomStream& random) {
  static const std::vector<std::vector<std::int64_t>> shapes = {{},     {1},       {3},     {0},  {3, 0, 2}, {16},
                                                                {5, 7}, {2, 3, 5}, {40, 3}, {17}, {64},      {100}};
  std::vector<TensorSpec> tensors;
  const std::uint64_t count = 1 + random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    TensorSpec tensor;
    tensor.name = fmt::format("tensor{}", i);
    tensor.shape = shapes[random.below(shapes.size())];
    tensor.group = static_cast<std::uint32_t>(random.below(2));
    if (random.below(8) == 0) tensor.kind = TensorKind::buffer;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

StoreOptions draw_store(RandomStream& random) {
  StoreOptions store;
  store.optimizer.kind = random.below(2) == 0 ? OptimizerKind::sgd : static_cast<OptimizerKind>(random.below(5));
  if (random.below(2) == 0) store.optimizer.momentum = 0.9;
  store.optimizer.nesterov = store.optimizer.momentum > 0 && random.below(2) == 0;
  store.optimizer.epsilon = 1e-6;
  store.groups = {{random.below(2) == 0 ? 0.01 : 0.0, 1.0}, {0.0, 0.5}};
  store.schedule.kind = static_cast<ScheduleKind>(random.below(3));
  store.schedule.base_rate = 0.05;
  store.schedule.warmup_steps = random.below(4);
  store.schedule.every_steps = 3;
  store.schedule.gamma = 0.5;
  store.schedule.total_steps = 12;
  return store;
}

}  // namespace

std::uint64_t Scenario::samples(Rank rank, Clock clock) const {
  if (equal_samples) return 4;
  return hash(seed, 11, rank.value, clock.value) % 5;
}

bool Scenario::present(Rank rank, Clock clock, std::uint32_t tensor) const {
  if (samples(rank, clock) == 0) return false;
  return static_cast<double>(hash(seed, 12, rank.value, clock.value, tensor) % 1000) >= absent_rate * 1000;
}

float Scenario::gradient(Rank rank, Clock clock, std::uint32_t tensor, std::uint64_t element, float weight) const {
  if (non_finite && non_finite->rank == rank && non_finite->clock == clock && non_finite->tensor == tensor &&
      element == 0)
    return std::numeric_limits<float>::quiet_NaN();
  return unit(hash(seed, 13, rank.value, clock.value, mix64(tensor) + element)) + 0.25F * weight;
}

float Scenario::initial(std::uint32_t tensor, std::uint64_t element) const {
  return unit(hash(seed, 14, tensor, element));
}

std::uint64_t Scenario::last_clock(Rank rank) const {
  const std::uint64_t own = steps[rank.value];
  return stop_at ? std::min(own, stop_at->value) : own;
}

std::string Scenario::describe() const {
  return fmt::format(
      "seed {}: {} servers x {} shards, {} workers, staleness {}, {} tensors, slices of {} bytes, optimizer {}, steps "
      "[{}], "
      "{} samples, absent {:.1f}, {} resets, clip {}, skip {}",
      seed, servers, shards_per_server, workers,
      sync.staleness == SyncPolicy::kUnbounded ? std::string("unbounded") : std::to_string(sync.staleness),
      tensors.size(), slice_bytes, static_cast<int>(store.optimizer.kind), fmt::join(steps, ","),
      equal_samples ? "equal" : "unequal", absent_rate, resets, clip_norm, skip_non_finite);
}

Scenario draw(std::uint64_t seed, SyncPolicy sync) {
  RandomStream random(seed, 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.sync = sync;
  scenario.servers = 1 + static_cast<std::uint32_t>(random.below(4));
  scenario.shards_per_server = 1 + static_cast<std::uint32_t>(random.below(3));
  scenario.workers = 1 + static_cast<std::uint32_t>(random.below(4));
  scenario.tensors = draw_tensors(random);
  scenario.slice_bytes = 64 << random.below(4);
  scenario.store = draw_store(random);
  scenario.equal_samples = random.below(2) == 0;
  scenario.absent_rate = random.below(2) == 0 ? 0.0 : 0.3;
  scenario.resets = random.below(2) == 0 ? 0 : static_cast<std::uint32_t>(random.below(6));
  if (random.below(3) == 0) scenario.slow_rank = Rank(static_cast<std::uint32_t>(random.below(scenario.workers)));
  const std::uint64_t steps = random.below(12);
  for (std::uint32_t rank = 0; rank < scenario.workers; ++rank)
    scenario.steps.push_back(random.below(3) == 0 ? random.below(12) : steps);
  if (sync.gathers()) {
    if (random.below(4) == 0) scenario.clip_norm = 0.5 + 2.0 * random.uniform();
    if (random.below(4) == 0) scenario.skip_non_finite = true;
    if (scenario.skip_non_finite && random.below(2) == 0)
      scenario.non_finite = {Rank(static_cast<std::uint32_t>(random.below(scenario.workers))), Clock(random.below(6)),
                             static_cast<std::uint32_t>(random.below(scenario.tensors.size()))};
    // A model without a single value has nothing that holds a worker back at the stop clock.
    const bool any_value =
        std::ranges::any_of(scenario.tensors, [](const TensorSpec& t) { return t.element_count() > 0; });
    if (any_value && random.below(5) == 0 && scenario.steps[0] > 2)
      scenario.stop_at = Clock(1 + random.below(scenario.steps[0] - 1));
  }
  return scenario;
}

}  // namespace parley::simulation

#include "tests/support/fake_worker/fake_trainer.h"

#include "common/base/instant.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/transport/monotonic_clock.h"

#include <xxhash.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <unordered_map>

namespace parley {
namespace {

std::uint64_t hash_of(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

// Uniform in [-1, 1), 24 bits: exact in float32.
float noise(std::uint64_t key, std::uint64_t element) {
  return static_cast<float>(mix64(key + element) >> 40) * 0x1.0p-23F - 1.0F;
}

}  // namespace

FakeTrainer::FakeTrainer(const FakePlan& plan, const Layout& layout, ParameterArena parameters, GradientArena gradients,
                         Rank rank, std::uint64_t seed, double slow_factor)
    : plan_(plan),
      layout_(layout),
      parameters_(parameters),
      gradients_(gradients),
      rank_(rank),
      seed_(seed),
      slow_factor_(slow_factor),
      tensors_(layout.tensors().size()) {
  std::unordered_map<std::string, const FakeTensor*> by_name;
  for (const FakeTensor& tensor : plan.tensors) by_name.emplace(tensor.spec.name, &tensor);
  for (std::uint32_t index = 0; index < tensors_.size(); ++index)
    tensors_[index] = by_name.at(layout.tensor(index).name);
}

void FakeTrainer::initialize() {
  for (std::uint32_t index = 0; index < tensors_.size(); ++index) {
    const FakeTensor& tensor = *tensors_[index];
    const TensorPlace& where = layout_.place(index);
    const std::uint64_t key = mix64(seed_ ^ hash_of(tensor.spec.name));
    const auto values = parameters_.half(Clock(0)).subspan(where.offset, where.count);
    for (std::uint64_t element = 0; element < where.count; ++element)
      values[element] = tensor.initial ? static_cast<float>(*tensor.initial) : noise(key, element);
  }
}

void FakeTrainer::fill_gradients(Clock clock) {
  for (std::uint32_t index = 0; index < tensors_.size(); ++index)
    if (!tensors_[index]->absent(rank_, clock)) fill(*tensors_[index], layout_.place(index), clock);
}

void FakeTrainer::fill(const FakeTensor& tensor, const TensorPlace& where, Clock clock) {
  const auto gradient = gradients_.values().subspan(where.offset, where.count);
  const auto weights = parameters_.half(clock).subspan(where.offset, where.count);
  const std::uint64_t key = mix64(mix64(mix64(seed_ ^ hash_of(tensor.spec.name)) ^ rank_.value) ^ clock.value);
  for (std::uint64_t element = 0; element < where.count; ++element)
    gradient[element] =
        plan_.constant ? static_cast<float>(*plan_.constant) : noise(key, element) + 0.25F * weights[element];
  const auto& nan = plan_.nan;
  if (nan && nan->tensor == tensor.spec.name && nan->rank == static_cast<std::int64_t>(rank_.value) &&
      nan->clock == static_cast<std::int64_t>(clock.value) && where.count > 0)
    gradient.back() = std::numeric_limits<float>::quiet_NaN();
}

void FakeTrainer::mark_ready(Strategy& strategy, Clock clock) {
  std::vector<std::uint8_t> present;
  for (std::uint32_t index = 0; index < layout_.slice_count(); ++index) {
    const SliceId id(index);
    present.clear();
    for (const SlicePart& part : layout_.slice(id).parts)
      present.push_back(tensors_[part.tensor]->absent(rank_, clock) ? 0 : 1);
    strategy.slice_ready(id, present);
  }
}

void FakeTrainer::hold(Clock clock) const {
  if (!plan_.hold || static_cast<std::uint64_t>(plan_.hold->clock) != clock.value) return;
  log::info("waits for file {} at clock {}", plan_.hold->file, clock);
  while (!std::filesystem::exists(plan_.hold->file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

FakeResult FakeTrainer::run(Strategy& strategy) {
  FakeResult result;
  Clock clock = strategy.start();
  log::info("trains from clock {} on", clock);
  const Instant since = monotonic_now();
  const Duration pause = from_seconds(plan_.step_ms / 1000 * slow_factor_);
  bool asked = false;
  while (clock.value < plan_.steps_of(rank_) && !result.stopped) {
    hold(clock);
    if (plan_.stop_at && !asked && rank_ == Rank(0) && clock.value >= static_cast<std::uint64_t>(*plan_.stop_at)) {
      strategy.request_stop(clock);
      asked = true;
    }
    result.stopped = strategy.begin_step(clock, plan_.samples_of(rank_)) == StepResult::stopped;
    if (result.stopped) break;
    fill_gradients(clock);
    if (pause > Duration::zero()) std::this_thread::sleep_for(pause);
    mark_ready(strategy, clock);
    result.stopped = strategy.finish_step(clock) == StepResult::stopped;
    if (result.stopped) break;
    ++clock;
    ++result.steps;
    result.samples += plan_.samples_of(rank_);
  }
  result.end = clock;
  // How long its own steps took, not how long it then waited for the others.
  result.seconds = to_seconds(monotonic_now() - since);
  result.final_half = strategy.finish(clock);
  return result;
}

}  // namespace parley

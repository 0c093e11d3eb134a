#include "tests/simulation/reference.h"

#include "common/optimizer/inspect.h"
#include "common/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

namespace parley::simulation {

Reference::Reference(const Scenario& scenario, const Layout& layout) : scenario_(scenario), layout_(layout) {
  Tensors initial;
  for (std::uint32_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    std::vector<float> values(layout.place(tensor).count);
    for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = scenario.initial(tensor, i);
    slots_.emplace_back(slot_count(scenario.store.optimizer), std::vector<float>(values.size(), 0.0F));
    initial.push_back(std::move(values));
  }
  steps_.assign(layout.tensors().size(), 0);
  versions_.push_back(std::move(initial));
  std::uint64_t clocks = 0;
  for (std::uint32_t rank = 0; rank < scenario.workers; ++rank)
    clocks = std::max(clocks, scenario.last_clock(Rank(rank)));
  for (std::uint64_t clock = 0; clock < clocks; ++clock) step(Clock(clock));
}

std::vector<Rank> Reference::members(Clock clock) const {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < scenario_.workers; ++rank)
    if (clock.value < scenario_.last_clock(Rank(rank))) ranks.push_back(Rank(rank));
  return ranks;
}

// Nothing where no member had a gradient; docs/design.md point 7 for the order of operations.
std::optional<std::vector<float>> Reference::mean(Clock clock, std::uint32_t tensor) const {
  const auto ranks = members(clock);
  const std::vector<float>& weights = versions_.back()[tensor];
  std::uint64_t total = 0;
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  bool equal = true;
  bool any = false;
  for (const Rank rank : ranks) {
    const std::uint64_t samples = scenario_.samples(rank, clock);
    any = any || scenario_.present(rank, clock, tensor);
    if (samples == 0) continue;
    if (count == 0) first = samples;
    equal = equal && samples == first;
    total += samples;
    ++count;
  }
  if (!any) return std::nullopt;
  std::vector<float> result(weights.size(), 0.0F);
  if (layout_.tensor(tensor).kind == TensorKind::buffer) {
    const Rank lowest = *std::ranges::find_if(ranks, [&](Rank rank) { return scenario_.present(rank, clock, tensor); });
    for (std::uint64_t i = 0; i < result.size(); ++i)
      result[i] = scenario_.gradient(lowest, clock, tensor, i, weights[i]);
    return result;
  }
  const auto after = static_cast<float>(1.0 / static_cast<double>(equal ? count : total));
  for (std::uint64_t i = 0; i < result.size(); ++i) {
    float sum = 0;
    bool begun = false;
    for (const Rank rank : ranks) {
      if (!scenario_.present(rank, clock, tensor)) continue;
      const float g = scenario_.gradient(rank, clock, tensor, i, weights[i]);
      const float term = equal ? g : g * static_cast<float>(scenario_.samples(rank, clock));
      sum = begun ? sum + term : term;
      begun = true;
    }
    result[i] = (sum + 0.0F) * after;
  }
  return result;
}

// The factor on the whole gradient: the squared norm is summed slice by slice, part by part, in slice order.
float Reference::clip_scale(const std::vector<std::optional<std::vector<float>>>& means) const {
  if (scenario_.clip_norm <= 0) return 1.0F;
  double sum = 0;
  for (const Slice& slice : layout_.slices()) {
    double own = 0;
    for (const SlicePart& part : slice.parts) {
      if (slice.kind == TensorKind::buffer || !means[part.tensor]) continue;
      const std::uint64_t begin = slice.offset + part.begin - layout_.place(part.tensor).offset;
      own += sum_of_squares({means[part.tensor]->data() + begin, part.count});
    }
    sum += own;
  }
  const double factor = scenario_.clip_norm / (std::sqrt(sum) + 1e-6);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

void Reference::step(Clock clock) {
  Tensors next = versions_.back();
  std::vector<std::optional<std::vector<float>>> means;
  bool finite = true;
  for (std::uint32_t tensor = 0; tensor < next.size(); ++tensor) {
    means.push_back(mean(clock, tensor));
    if (means.back() && layout_.tensor(tensor).kind == TensorKind::parameter)
      finite = finite && std::ranges::all_of(*means.back(), [](float v) { return std::isfinite(v); });
  }
  if (finite) {
    const float clip = clip_scale(means);
    const double rate = learning_rate(scenario_.store.schedule, clock);
    for (std::uint32_t tensor = 0; tensor < next.size(); ++tensor) {
      if (!means[tensor]) continue;
      std::vector<float>& gradient = *means[tensor];
      if (layout_.tensor(tensor).kind == TensorKind::buffer) {
        next[tensor] = gradient;
        continue;
      }
      if (clip != 1.0F)
        for (float& value : gradient) value *= clip;
      SlotSpans spans;
      for (std::size_t slot = 0; slot < slots_[tensor].size(); ++slot) spans[slot] = slots_[tensor][slot];
      const auto scalars = step_scalars(scenario_.store.optimizer, scenario_.store.groups[layout_.tensor(tensor).group],
                                        rate, ++steps_[tensor]);
      apply(scenario_.store.optimizer, scalars, gradient, versions_.back()[tensor], next[tensor], spans);
    }
  }
  versions_.push_back(std::move(next));
}

}  // namespace parley::simulation

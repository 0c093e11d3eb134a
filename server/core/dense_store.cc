#include "server/core/dense_store.h"

#include "common/base/log.h"
#include "common/optimizer/inspect.h"
#include "common/optimizer/mean.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley {
namespace {

const GroupOptions& group_options(const StoreOptions& options, std::uint32_t group) {
  static const GroupOptions defaults;
  if (options.groups.empty()) return defaults;
  return options.groups[std::min<std::size_t>(group, options.groups.size() - 1)];
}

}  // namespace

DenseStore::DenseStore(const StoreOptions& options, const Layout& layout, std::span<const SliceId> slices)
    : options_(options), layout_(layout) {
  std::uint64_t count_max = 0;
  for (const SliceId id : slices) {
    const Slice& slice = layout.slice(id);
    entries_.try_emplace(id.value, options_, group_options(options_, slice.group), slice);
    count_max = std::max(count_max, slice.count);
  }
  mean_.resize(count_max);
}

DenseStore::Entry& DenseStore::entry(SliceId id) { return entries_.at(id.value); }
const DenseStore::Entry& DenseStore::entry(SliceId id) const { return entries_.at(id.value); }

void DenseStore::initialize(SliceId id, std::span<const float> values) {
  Entry& where = entry(id);
  PARLEY_CHECK(!where.initialized, "slice {} has version {}", id, where.version);
  std::ranges::copy(values, where.weights.newest().values().begin());
  where.initialized = true;
}

std::optional<Frame> DenseStore::lend(SliceId id, Version version) {
  Entry& where = entry(id);
  if (!where.initialized) return std::nullopt;
  if (version == where.version) return where.weights.newest().lend();
  if (version.next() == where.version) return where.weights.previous().lend();
  return std::nullopt;
}

std::optional<std::string> DenseStore::gather(SliceId id, std::span<const Contribution> contributions) {
  const Slice& slice = layout_.slice(id);
  gathered_ = id;
  present_.assign(slice.parts.size(), 0);
  gradients_.resize(contributions.size());
  samples_.resize(contributions.size());
  std::ranges::transform(contributions, samples_.begin(), &Contribution::samples);
  for (std::size_t index = 0; index < slice.parts.size(); ++index) {
    const SlicePart& part = slice.parts[index];
    for (std::size_t i = 0; i < contributions.size(); ++i) {
      const Contribution& push = contributions[i];
      const bool has = push.samples > 0 && !push.present.empty() && push.present[index] != 0;
      gradients_[i] = has ? push.gradient.data() + part.begin : nullptr;
      present_[index] |= static_cast<std::uint8_t>(has);
      if (has && slice.kind == TensorKind::buffer) break;  // the lowest rank's value counts
    }
    if (present_[index] == 0) continue;
    const std::span<float> out(mean_.data() + part.begin, part.count);
    if (slice.kind == TensorKind::buffer) {
      const auto* value = *std::ranges::find_if(gradients_, [](const float* g) { return g != nullptr; });
      std::copy_n(value, part.count, out.begin());
    } else if (!weighted_mean(gradients_, samples_, out)) {
      return name_non_finite(slice, contributions, part);
    }
  }
  return std::nullopt;
}

std::string DenseStore::name_non_finite(const Slice& slice, std::span<const Contribution> contributions,
                                        const SlicePart& part) const {
  const std::string& tensor = layout_.tensor(part.tensor).name;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    if (gradients_[i] == nullptr) continue;
    const std::span<const float> values(gradients_[i], part.count);
    if (const auto at = find_non_finite(values))
      return fmt::format("gradient of worker {} is not finite: tensor '{}' has {} at element {}", contributions[i].rank,
                         tensor, values[*at], *at + (slice.offset + part.begin - layout_.place(part.tensor).offset));
  }
  return fmt::format("the mean of the workers' gradients overflows float32: tensor '{}'", tensor);
}

double DenseStore::sum_of_squares(SliceId id) const {
  PARLEY_CHECK(id == gathered_, "slice {} was not gathered last", id);
  const Slice& slice = layout_.slice(id);
  double sum = 0;
  if (slice.kind == TensorKind::buffer) return sum;
  for (std::size_t index = 0; index < slice.parts.size(); ++index)
    if (present_[index] != 0)
      sum += parley::sum_of_squares({mean_.data() + slice.parts[index].begin, slice.parts[index].count});
  return sum;
}

void DenseStore::apply(SliceId id, Clock clock, double rate_scale, float gradient_scale) {
  PARLEY_CHECK(id == gathered_, "slice {} was not gathered last", id);
  const Slice& slice = layout_.slice(id);
  Entry& where = entry(id);
  const std::span<float> mean(mean_.data(), slice.count);
  if (gradient_scale != 1.0F && slice.kind == TensorKind::parameter) scale(mean, gradient_scale, mean);
  where.optimizer.apply(learning_rate(options_.schedule, clock) * rate_scale, present_, mean,
                        where.weights.newest().values(), where.weights.next().values());
  where.weights.publish();
  ++where.version;
}

void DenseStore::skip(SliceId id) {
  Entry& where = entry(id);
  copy_weights(where.weights.newest().values(), where.weights.next().values());
  where.weights.publish();
  ++where.version;
}

}  // namespace parley

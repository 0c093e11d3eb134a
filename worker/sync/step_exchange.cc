#include "worker/sync/step_exchange.h"

#include "common/base/log.h"

#include <algorithm>

namespace parley {
namespace {

// A float32 holds whole numbers exactly up to here, so a sample count travels in two halves.
constexpr std::uint64_t kExact = std::uint64_t{1} << 24;

}  // namespace

StepExchange::StepExchange(Collective& collective, std::size_t tensor_count) : collective_(collective) {
  PARLEY_CHECK(tensor_count < kExact, "{} tensors", tensor_count);
  const std::size_t ranks = collective.world_size();
  opening_.samples.resize(ranks);
  closing_.present.resize(tensor_count);
  closing_.non_finite.resize(ranks);
  closing_.busy_seconds.resize(ranks);
  opening_values_.resize(2 * ranks + 2);             // low halves, high halves, stop, finished
  closing_values_.resize(tensor_count + 2 * ranks);  // present, non-finite tensor + 1, seconds
}

const StepOpening& StepExchange::open(std::uint64_t samples, bool stop, bool finished) {
  PARLEY_CHECK(samples < kExact * kExact, "{} samples in one step", samples);
  const std::size_t ranks = opening_.samples.size();
  const std::size_t me = collective_.rank().value;
  std::fill(opening_values_.begin(), opening_values_.end(), 0.0F);
  const std::uint64_t high = samples / kExact;
  opening_values_[me] = static_cast<float>(samples % kExact);
  opening_values_[ranks + me] = static_cast<float>(high);
  opening_values_[2 * ranks] = stop ? 1.0F : 0.0F;
  opening_values_[2 * ranks + 1] = finished ? 1.0F : 0.0F;
  collective_.all_reduce(opening_values_);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    opening_.samples[rank] = static_cast<std::uint64_t>(opening_values_[rank]) +
                             static_cast<std::uint64_t>(opening_values_[ranks + rank]) * kExact;
  }
  opening_.stop = opening_values_[2 * ranks] > 0;
  opening_.finished = static_cast<std::uint32_t>(opening_values_[2 * ranks + 1]);
  return opening_;
}

const StepClosing& StepExchange::close(std::span<const std::uint8_t> present, std::optional<std::uint32_t> non_finite,
                                       double busy_seconds) {
  const std::size_t tensors = closing_.present.size();
  const std::size_t ranks = closing_.non_finite.size();
  const std::size_t me = collective_.rank().value;
  PARLEY_CHECK(present.size() == tensors, "{} flags for {} tensors", present.size(), tensors);
  std::fill(closing_values_.begin(), closing_values_.end(), 0.0F);
  std::transform(present.begin(), present.end(), closing_values_.begin(),
                 [](std::uint8_t flag) { return flag != 0 ? 1.0F : 0.0F; });
  if (non_finite) closing_values_[tensors + me] = static_cast<float>(*non_finite + 1);
  closing_values_[tensors + ranks + me] = static_cast<float>(busy_seconds);
  collective_.all_reduce(closing_values_);
  for (std::size_t tensor = 0; tensor < tensors; ++tensor)
    closing_.present[tensor] = closing_values_[tensor] > 0 ? 1 : 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto mark = static_cast<std::uint32_t>(closing_values_[tensors + rank]);
    closing_.non_finite[rank] = mark == 0 ? std::nullopt : std::optional(mark - 1);
    closing_.busy_seconds[rank] = closing_values_[tensors + ranks + rank];
  }
  return closing_;
}

}  // namespace parley

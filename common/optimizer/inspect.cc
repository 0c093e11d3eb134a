#include "common/optimizer/inspect.h"

#include "common/optimizer/kernels.h"

#include <bit>
#include <cstdint>

namespace parley {

bool all_finite(std::span<const float> values) { return kernels().all_finite(values.data(), values.size()); }

std::optional<std::size_t> find_non_finite(std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (non_finite_bits(std::bit_cast<std::uint32_t>(values[i]))) return i;
  }
  return std::nullopt;
}

double sum_of_squares(std::span<const float> values) { return kernels().sum_of_squares(values.data(), values.size()); }

}  // namespace parley

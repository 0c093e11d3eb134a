// Looks at values without changing them: finite or not, and the squared norm for clipping.
//
// Thread rule: any thread. Nothing is allocated. Invariant: sum_of_squares has a fixed order of operations, whatever
// the vector level: element i is squared and added, in double, to partial sum i mod 16, in ascending order; the partial
// sums are then added in halves (0+8, 1+9, ... then 0+4, ... 0+2, ... 0+1). It is defined per call: the norm of a
// tensor or model is the sum of its slices' values in slice order, which does not depend on which server held them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace parley {

// True if no value is infinite or NaN.
[[nodiscard]] bool all_finite(std::span<const float> values);

// Index of the first value that is infinite or NaN. Slower than all_finite(): for the message about it.
[[nodiscard]] std::optional<std::size_t> find_non_finite(std::span<const float> values);

// Sum of the squares in double: exact squares, no overflow for finite values.
[[nodiscard]] double sum_of_squares(std::span<const float> values);

}  // namespace parley

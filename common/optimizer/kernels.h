// The loops under optimizer.h, mean.h and inspect.h, behind one table per vector level. kernels.inc is the one source
// of the loops; kernels_generic.cc and kernels_x86_64_v{2,3,4}.cc compile it once per level, and the best level that
// the CPU has is chosen at the first call. (The compiler's target_clones are no way to do this: they crash at start
// under ThreadSanitizer.)
//
// Callers use optimizer.h, mean.h and inspect.h, which check sizes; only those files and tests include this one.
//
// Invariant: for finite inputs every level gives the same bits (element.h has the order of operations; the sums that
// run over elements have fixed lanes, inspect.h). Only the bits of a NaN may differ between levels. Thread rule:
// kernels() may be called from any thread. force_level() is for tests and for main before threads start.
#pragma once

#include "common/optimizer/element.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley {

enum class VectorLevel : std::uint8_t { generic, x86_64_v2, x86_64_v3, x86_64_v4 };

struct KernelTable {
  VectorLevel level;
  // One optimizer step, indexed by UpdateRule.
  void (*step[kUpdateRules])(const StepScalars& scalars, const StepArrays& arrays);
  // out[i] = finish((g_0[i] * before_0 + g_1[i] * before_1) + ..., after) over the ranks in order; a null gradient is
  // zero. before_w is float(samples[w]) where `weighted`, else 1; ranks without samples are left out. True if all of
  // `out` is finite. `out` may be one of the gradients.
  bool (*mean)(const float* const* gradients, const std::uint64_t* samples, std::size_t ranks, bool weighted,
               float after, float* out, std::size_t count);
  // out[i] = finish(sum[i], after); true if all of `out` is finite. out == sum is allowed.
  bool (*finish_mean)(const float* sum, float after, float* out, std::size_t count);
  // out[i] = in[i] * factor. out == in is allowed.
  void (*scale)(const float* in, float factor, float* out, std::size_t count);
  bool (*all_finite)(const float* values, std::size_t count);
  double (*sum_of_squares)(const float* values, std::size_t count);
};

// The table in use.
const KernelTable& kernels();

// The table of a level, or null if this build or this CPU has not got it.
const KernelTable* kernels_of(VectorLevel level);

// Makes kernels() return that level's table from now on; a level that kernels_of() has not got is our own bug.
void force_level(VectorLevel level);

// "generic", "x86-64-v2", ...: for reports.
std::string_view name(VectorLevel level);

// Number of independent partial sums of sum_of_squares; see inspect.h.
inline constexpr std::size_t kSquareLanes = 16;

}  // namespace parley

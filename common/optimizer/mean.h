// The mean of the workers' gradients, weighted by their samples, so that the union of the workers' batches gives the
// gradient that one worker would have computed on the big batch. Servers call weighted_mean(); in all-reduce mode each
// rank calls scale(), a library sums, and each rank calls finish_mean().
//
// Exact order of operations, all float32, each operation rounded. Ranks without samples are left out; of the others
// there are W, with N samples together.
//   equal counts:   (((g_0 + g_1) + g_2) + ... + 0.0f) * float(1.0 / W)
//   unequal counts: (((g_0 * float(n_0) + g_1 * float(n_1)) + ...) + 0.0f) * float(1.0 / N)
// in rank order. The + 0.0f turns a sum of -0 into +0: whether a rank that has nothing to add sends zeros (as it must
// in an all-reduce) or is left out then makes no difference.
//
// Invariants (tested):
//   1. With one or two ranks, scale() by before(n) on each rank, a float32 sum of the results made by anybody, and
//      finish_mean() give the same bits as weighted_mean(). With more ranks they do if the sum is made in rank order.
//   2. A gradient of null pointer or of zeros gives the same bits. It counts its samples: a worker that trained on
//      samples without using this tensor has a zero gradient for it.
//   3. The mean is finite only if all gradients with samples are; so the returned flag is the check that must come
//      before a slice is touched. It is false, too, where finite gradients overflow in the sum.
// Thread rule: any thread, as long as no two calls share an output array. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace parley {

// The factors of the mean for one set of sample counts. All ranks must compute it from the same counts.
struct MeanScaling {
  bool weighted = false;  // counts differ: each gradient is scaled before the sum
  float after = 0;        // factor on the sum; 0 where nobody has samples

  // The factor on the gradient of a rank with `samples` > 0 samples. Counts above 2^24 are rounded to float32.
  float before(std::uint64_t samples) const { return weighted ? static_cast<float>(samples) : 1.0F; }
};

// `samples`: one count per rank, in rank order; 0 for a rank that is absent or had no data.
MeanScaling mean_scaling(std::span<const std::uint64_t> samples);

// out = the weighted mean over the ranks. `gradients`: a pointer to out.size() floats per rank, in rank order, or null
// for a zero gradient; one of them may be out.data(), no other overlap. `samples` has one count per rank, at least one
// of them above 0. Returns true if the whole mean is finite.
[[nodiscard]] bool weighted_mean(std::span<const float* const> gradients, std::span<const std::uint64_t> samples,
                                 std::span<float> out);

// out = in * factor. out may be in.
void scale(std::span<const float> in, float factor, std::span<float> out);

// out = (sum + 0.0f) * scaling.after, where `sum` is the sum over the ranks of the gradients times before(). out may be
// sum. Returns true if the whole mean is finite.
[[nodiscard]] bool finish_mean(const MeanScaling& scaling, std::span<const float> sum, std::span<float> out);

}  // namespace parley

#include "common/optimizer/mean.h"

#include "common/base/log.h"
#include "common/optimizer/kernels.h"

namespace parley {

MeanScaling mean_scaling(std::span<const std::uint64_t> samples) {
  MeanScaling scaling;
  std::uint64_t present = 0;
  std::uint64_t total = 0;
  std::uint64_t first = 0;
  for (const std::uint64_t count : samples) {
    if (count == 0) continue;
    if (present == 0) first = count;
    if (count != first) scaling.weighted = true;
    ++present;
    total += count;
  }
  if (present > 0) {
    scaling.after = static_cast<float>(1.0 / static_cast<double>(scaling.weighted ? total : present));
  }
  return scaling;
}

bool weighted_mean(std::span<const float* const> gradients, std::span<const std::uint64_t> samples,
                   std::span<float> out) {
  PARLEY_CHECK(gradients.size() == samples.size(), "{} gradients, {} sample counts", gradients.size(), samples.size());
  const MeanScaling scaling = mean_scaling(samples);
  PARLEY_CHECK(scaling.after > 0, "none of the {} ranks has samples", samples.size());
  return kernels().mean(gradients.data(), samples.data(), samples.size(), scaling.weighted, scaling.after, out.data(),
                        out.size());
}

void scale(std::span<const float> in, float factor, std::span<float> out) {
  PARLEY_CHECK(in.size() == out.size(), "{} elements into {}", in.size(), out.size());
  kernels().scale(in.data(), factor, out.data(), out.size());
}

bool finish_mean(const MeanScaling& scaling, std::span<const float> sum, std::span<float> out) {
  PARLEY_CHECK(sum.size() == out.size(), "{} elements into {}", sum.size(), out.size());
  return kernels().finish_mean(sum.data(), scaling.after, out.data(), out.size());
}

}  // namespace parley

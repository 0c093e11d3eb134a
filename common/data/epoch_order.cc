#include "common/data/epoch_order.h"

#include "common/base/log.h"
#include "common/base/random.h"

#include <numeric>
#include <utility>

namespace parley {
namespace {

// Keeps the draws of the data order apart from every other use of the same seed ("dataorde" in ASCII).
constexpr std::uint64_t kDataOrderStream = 0x646174616f726465ULL;

}  // namespace

EpochOrder::EpochOrder(std::uint64_t seed, std::uint64_t samples) : seed_(seed), samples_(samples) {
  PARLEY_CHECK(samples > 0, "an epoch needs at least one sample");
}

std::span<const std::uint64_t> EpochOrder::of(std::uint64_t epoch) {
  if (epoch_ == epoch) return ids_;
  ids_.resize(samples_);
  std::iota(ids_.begin(), ids_.end(), std::uint64_t{0});
  // Fisher and Yates. std::shuffle would do, but its draws differ between standard libraries.
  RandomStream random(seed_, mix64(kDataOrderStream ^ mix64(epoch)));
  for (std::uint64_t last = samples_ - 1; last > 0; --last) {
    std::swap(ids_[last], ids_[random.below(last + 1)]);
  }
  epoch_ = epoch;
  return ids_;
}

}  // namespace parley

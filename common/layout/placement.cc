#include "common/layout/placement.h"

#include "common/base/log.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace parley {

Placement::Placement(const Layout& layout, std::uint32_t shard_count)
    : owners_(layout.slice_count()), slices_(shard_count), bytes_(shard_count, 0) {
  PARLEY_CHECK(shard_count > 0, "shard_count = 0");
  std::vector<std::uint32_t> order(layout.slice_count());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::uint32_t slice) { return layout.slice(SliceId(slice)).count; });
  for (const std::uint32_t slice : order) {
    const auto least = std::ranges::min_element(bytes_) - bytes_.begin();
    owners_[slice] = ShardId(static_cast<std::uint32_t>(least));
    bytes_[static_cast<std::size_t>(least)] += layout.slice(SliceId(slice)).bytes();
  }
  for (std::uint32_t slice = 0; slice < owners_.size(); ++slice)
    slices_[owners_[slice].value].push_back(SliceId(slice));
}

double Placement::skew() const {
  const auto [least, most] = std::ranges::minmax_element(bytes_);
  if (*most == 0) return 1.0;
  if (*least == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*most) / static_cast<double>(*least);
}

}  // namespace parley

#include "common/layout/placement.h"

#include "common/base/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace parley {
namespace {

// Every slice has one owner, both directions agree, and the loads are the sums.
void check(const Layout& layout, const Placement& placement) {
  std::size_t placed = 0;
  for (std::uint32_t shard = 0; shard < placement.shard_count(); ++shard) {
    std::uint64_t bytes = 0;
    const auto slices = placement.slices(ShardId(shard));
    ASSERT_TRUE(std::ranges::is_sorted(slices));
    for (const SliceId slice : slices) {
      ASSERT_EQ(placement.owner(slice), ShardId(shard));
      bytes += layout.slice(slice).bytes();
    }
    ASSERT_EQ(placement.bytes(ShardId(shard)), bytes);
    placed += slices.size();
  }
  ASSERT_EQ(placed, layout.slice_count());
}

Layout one_large_many_tiny() {
  std::vector<TensorSpec> tensors{{"embedding", {16'384, 1024}}};  // 64 MiB
  for (int i = 0; i < 500; ++i) tensors.push_back({fmt::format("bias{}", i), {10}});
  return {tensors, 1 << 20};
}

TEST(Placement, every_slice_has_one_owner) {
  RandomStream random(5, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<TensorSpec> tensors;
    for (std::uint64_t i = random.below(20); i > 0; --i)
      tensors.push_back({fmt::format("t{}", i), {static_cast<std::int64_t>(random.below(200))}});
    const Layout layout(tensors, 64 * (1 + random.below(4)));
    const auto shards = 1 + static_cast<std::uint32_t>(random.below(9));
    ASSERT_NO_FATAL_FAILURE(check(layout, Placement(layout, shards)));
  }
}

TEST(Placement, a_large_tensor_and_many_tiny_ones_are_balanced) {
  const Layout layout = one_large_many_tiny();
  for (const std::uint32_t shards : {1U, 2U, 3U, 4U}) {
    const Placement placement(layout, shards);
    check(layout, placement);
    EXPECT_LE(placement.skew(), 1.1) << shards << " shards";
  }
}

TEST(Placement, more_shards_than_slices_leave_some_empty) {
  const Layout layout({{"a", {16}}, {"b", {16}}}, 64);
  const Placement placement(layout, 5);
  check(layout, placement);
  EXPECT_EQ(placement.owner(SliceId(0)), ShardId(0));
  EXPECT_EQ(placement.owner(SliceId(1)), ShardId(1));
  EXPECT_TRUE(placement.slices(ShardId(4)).empty());
  EXPECT_TRUE(std::isinf(placement.skew()));
  EXPECT_EQ(Placement(Layout({}, 64), 3).skew(), 1.0);
}

TEST(Placement, is_the_same_for_everybody) {
  const Layout layout = one_large_many_tiny();
  const Placement ours(layout, 3);
  const Placement theirs(one_large_many_tiny(), 3);
  for (std::uint32_t slice = 0; slice < layout.slice_count(); ++slice)
    ASSERT_EQ(ours.owner(SliceId(slice)), theirs.owner(SliceId(slice)));
}

// The rule itself, as another program would have to compute it: largest first, ties to the lower slice and shard.
TEST(Placement, goes_by_size_then_slice_then_shard) {
  const Layout layout(
      {{"d", {16}}, {"c", {32}}, {"b", {48}, ElementType::float32, TensorKind::parameter, 1}, {"a", {16}}}, 192);
  // Arena order: a (16) + c (32) in slice 0, d (16) in slice 1, b (48) in slice 2.
  ASSERT_EQ(layout.slice_count(), 3U);
  const Placement placement(layout, 2);
  EXPECT_EQ(placement.owner(SliceId(0)), ShardId(0));
  EXPECT_EQ(placement.owner(SliceId(2)), ShardId(1));
  EXPECT_EQ(placement.owner(SliceId(1)), ShardId(0));
}

}  // namespace
}  // namespace parley

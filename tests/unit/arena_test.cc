#include "common/layout/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace parley {
namespace {

TEST(Arena, a_block_is_aligned_zeroed_and_never_without_an_address) {
  for (const std::uint64_t count : {0U, 1U, 15U, 16U, 17U, 1000U}) {
    const FloatBlock block(count);
    EXPECT_EQ(block.values().size(), count);
    ASSERT_NE(block.values().data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.values().data()) % kTensorAlignmentBytes, 0U);
    EXPECT_TRUE(std::ranges::all_of(block.values(), [](float value) { return value == 0; }));
  }
}

TEST(Arena, clocks_alternate_between_the_halves_and_slices_are_ranges) {
  const Layout layout({{"a", {20}}, {"b", {5}}}, 64);
  FloatBlock half0(layout.arena_count());
  FloatBlock half1(layout.arena_count());
  const ParameterArena arena(layout, half0.values(), half1.values());
  EXPECT_EQ(arena.half(Clock(0)).data(), half0.values().data());
  EXPECT_EQ(arena.half(Clock(7)).data(), half1.values().data());
  for (std::uint32_t slice = 0; slice < layout.slice_count(); ++slice) {
    const auto view = arena.slice(SliceId(slice), Clock(3));
    EXPECT_EQ(view.data(), half1.values().data() + layout.slice(SliceId(slice)).offset);
    EXPECT_EQ(view.size(), layout.slice(SliceId(slice)).count);
  }
  FloatBlock gradients(layout.arena_count());
  EXPECT_EQ(GradientArena(layout, gradients.values()).slice(SliceId(1)).data(),
            gradients.values().data() + layout.slice(SliceId(1)).offset);
}

}  // namespace
}  // namespace parley

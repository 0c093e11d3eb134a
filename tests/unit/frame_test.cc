#include "common/wire/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace parley {
namespace {

// A release function that counts.
Frame counted(int& releases) {
  static constexpr std::array<std::byte, 4> bytes{};
  return {bytes, [](void* context) { ++*static_cast<int*>(context); }, &releases};
}

TEST(Frame, gives_its_memory_back_exactly_once) {
  int releases = 0;
  {
    Frame frame = counted(releases);
    Frame moved = std::move(frame);
    EXPECT_EQ(moved.size(), 4U);
    EXPECT_EQ(frame.size(), 0U);  // NOLINT(bugprone-use-after-move): a moved-from frame is an empty one
    Frame& same = moved;
    moved = std::move(same);
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(Frame, an_assignment_gives_back_what_was_held) {
  int first = 0;
  int second = 0;
  Frame frame = counted(first);
  frame = counted(second);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  frame.reset();
  frame.reset();
  EXPECT_EQ(second, 1);
}

TEST(Frame, a_copy_owns_its_bytes) {
  std::vector<std::byte> bytes{std::byte{1}, std::byte{2}};
  const Frame frame = Frame::copy(bytes);
  bytes[0] = std::byte{9};
  EXPECT_EQ(frame.bytes()[0], std::byte{1});
  EXPECT_EQ(Frame::copy({}).size(), 0U);
}

TEST(Frame, a_lease_is_idle_when_every_borrowed_frame_is_gone) {
  Lease lease;
  const std::array<std::byte, 8> memory{};
  EXPECT_TRUE(lease.idle());
  std::vector<Frame> out;
  out.push_back(Frame::borrow(memory, lease));
  out.push_back(Frame::borrow(memory, lease));
  EXPECT_EQ(out[0].bytes().data(), memory.data()) << "borrowed, not copied";
  out.pop_back();
  EXPECT_FALSE(lease.idle());
  out.clear();
  EXPECT_TRUE(lease.idle());
}

}  // namespace
}  // namespace parley

#include "server/core/weight_buffer.h"

#include "common/base/random.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace parley {
namespace {

TEST(WeightBuffer, a_lent_frame_outlives_the_buffers_owner) {
  auto buffer = WeightBuffer::make(3);
  buffer->values()[1] = 5;
  EXPECT_TRUE(buffer->unshared());
  Frame frame = buffer->lend();
  EXPECT_FALSE(buffer->unshared());
  buffer.reset();
  EXPECT_EQ(test::floats(frame), (std::vector<float>{0, 5, 0}));
}

void publish(WeightVersions& versions, float value) {
  std::ranges::fill(versions.next().values(), value);
  versions.publish();
}

TEST(WeightVersions, the_newest_and_the_one_before_stay_readable) {
  WeightVersions versions(2);
  for (int version = 1; version < 10; ++version) {
    std::ranges::fill(versions.next().values(), static_cast<float>(version));
    EXPECT_EQ(versions.newest().values()[0], static_cast<float>(version - 1)) << "while the next one is written";
    versions.publish();
    EXPECT_EQ(versions.newest().values()[0], static_cast<float>(version));
    EXPECT_EQ(versions.previous().values()[0], static_cast<float>(version - 1));
  }
}

TEST(WeightVersions, two_buffers_do_where_nothing_is_lent) {
  WeightVersions versions(4);
  std::set<const float*> memory{versions.newest().values().data(), versions.previous().values().data()};
  for (int version = 1; version < 20; ++version) {
    publish(versions, 1);
    memory.insert(versions.newest().values().data());
  }
  EXPECT_EQ(memory.size(), 2U);
}

// Frames are held for a random while; none may change, and buffers are taken up again.
TEST(WeightVersions, lent_buffers_are_never_rewritten_and_their_number_is_bounded) {
  RandomStream random(9, 1);
  WeightVersions versions(4);
  std::deque<std::pair<float, Frame>> lent;
  std::set<const float*> memory{versions.newest().values().data(), versions.previous().values().data()};
  std::size_t lent_max = 0;
  for (int version = 1; version < 3000; ++version) {
    publish(versions, static_cast<float>(version));
    memory.insert(versions.newest().values().data());
    for (std::uint64_t i = random.below(3); i > 0 && lent.size() < 6; --i)
      lent.emplace_back(static_cast<float>(version), versions.newest().lend());
    if (random.below(4) == 0) lent.emplace_back(static_cast<float>(version - 1), versions.previous().lend());
    lent_max = std::max(lent_max, lent.size());
    while (!lent.empty() && random.below(2) == 0)
      lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(random.below(lent.size())));
    for (const auto& [value, frame] : lent)
      ASSERT_EQ(test::floats(frame), std::vector<float>(4, value)) << "version " << version;
  }
  EXPECT_GT(lent_max, 4U);
  EXPECT_GT(memory.size(), 3U) << "some version was lent for long";
  EXPECT_LE(memory.size(), lent_max + 3);
}

}  // namespace
}  // namespace parley

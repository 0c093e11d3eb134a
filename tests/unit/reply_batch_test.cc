#include "server/core/reply_batch.h"

#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <vector>

namespace parley {
namespace {

wire::SliceWeights entry(std::uint32_t slice) { return {slice, 1, 2, 0, 0, 0, 4}; }

TEST(ReplyBatch, slices_for_one_connection_travel_in_one_message) {
  ReplyBatch batch;
  batch.add(Route(7), entry(0), test::frame_of(std::vector<float>{0}));
  batch.add(Route(3), entry(1), test::frame_of(std::vector<float>{1}));
  batch.add(Route(7), entry(2), test::frame_of(std::vector<float>{2}));
  Outbox<Route> out;
  batch.flush({}, out);
  ASSERT_EQ(out.sends().size(), 2U);
  EXPECT_EQ(out.sends()[0].to, Route(7));
  EXPECT_EQ(out.sends()[1].to, Route(3));
  const auto body = test::body_of<wire::Weights>(out.sends()[0].message);
  ASSERT_EQ(body.slices.size(), 2U);
  ASSERT_EQ(out.sends()[0].message.payload.size(), 2U);
  EXPECT_EQ(body.slices[1].slice(), 2U);
  EXPECT_EQ(test::floats(out.sends()[0].message.payload[1]), (std::vector<float>{2}));
}

TEST(ReplyBatch, is_empty_after_a_flush) {
  ReplyBatch batch;
  Outbox<Route> out;
  batch.flush({}, out);
  EXPECT_TRUE(out.empty());
  batch.add(Route(1), entry(0), Frame());
  batch.flush({}, out);
  batch.flush({}, out);
  EXPECT_EQ(out.sends().size(), 1U);
}

}  // namespace
}  // namespace parley

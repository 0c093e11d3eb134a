#include "common/control/registration.h"

#include "common/wire/limits.h"
#include "tests/support/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parley {
namespace {

using testing::HasSubstr;

const std::vector<TensorSpec> kModel{{"weight", {2, 3}, ElementType::float32, TensorKind::parameter, 1},
                                     {"bias", {}},
                                     {"empty", {0, 4}},
                                     {"running", {7}, ElementType::float32, TensorKind::buffer}};

// The layout as a peer would read it.
Result<std::vector<TensorSpec>> sent(std::unique_ptr<wire::ModelLayoutT> layout) {
  wire::RegisterT body;
  body.layout = std::move(layout);
  const Incoming message = test::delivered(compose(Header(), std::move(body)));
  return unpack_tensors(*message.body<wire::Register>()->layout());
}

std::unique_ptr<wire::ModelLayoutT> packed(const std::vector<TensorSpec>& tensors = kModel,
                                           std::uint64_t slice_bytes = 128) {
  return pack_layout(tensors, slice_bytes, Layout(tensors, slice_bytes).fingerprint());
}

std::string refusal(std::unique_ptr<wire::ModelLayoutT> layout) {
  const auto tensors = sent(std::move(layout));
  return tensors ? "accepted" : tensors.error().message;
}

TEST(Registration, a_model_arrives_as_it_was_sent) {
  const auto tensors = sent(packed());
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_EQ(*tensors, kModel);
}

TEST(Registration, a_model_that_cannot_be_is_refused) {
  auto layout = packed();
  layout->tensors[1]->type = 3;
  EXPECT_EQ(refusal(std::move(layout)), "tensor 'bias' has element type 3, this version knows float32");
  layout = packed();
  layout->tensors[0]->kind = 2;
  EXPECT_EQ(refusal(std::move(layout)), "tensor 'weight' has kind 2");
  layout = packed();
  layout->tensors[0]->shape = {2, -3};
  EXPECT_THAT(refusal(std::move(layout)), HasSubstr("tensor 'weight': found dimension -3"));
  layout = packed();
  layout->tensors[1]->name = "weight";
  EXPECT_THAT(refusal(std::move(layout)), HasSubstr("two tensors are named 'weight'"));
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{100}, limits::kSliceBytesMax + 64}) {
    layout = packed();
    layout->slice_bytes = bytes;
    EXPECT_THAT(refusal(std::move(layout)), HasSubstr("slices of "));
  }
  layout = packed();
  layout->fingerprint ^= 1;
  EXPECT_THAT(refusal(std::move(layout)), HasSubstr("fingerprint does not match"));
}

TEST(Registration, stats_and_entries_arrive_in_order) {
  wire::DoneT done;
  done.stats = pack_stats({{"seconds", 1.5}, {"bytes", 3e9}});
  const Incoming last_words = test::delivered(compose(Header(), std::move(done)));
  EXPECT_EQ(unpack_stats(last_words.body<wire::Done>()->stats()), (Stats{{"seconds", 1.5}, {"bytes", 3e9}}));
  EXPECT_TRUE(unpack_stats(nullptr).empty());

  wire::RegisterT body;
  body.config = pack_entries({{"train.seed", "1"}, {"a", ""}});
  const Incoming message = test::delivered(compose(Header(), std::move(body)));
  EXPECT_EQ(unpack_entries(message.body<wire::Register>()->config()), (ConfigEntries{{"train.seed", "1"}, {"a", ""}}));
  EXPECT_TRUE(unpack_entries(nullptr).empty());
}

}  // namespace
}  // namespace parley

#include "server/core/admission.h"

#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parley {
namespace {

TEST(Admission, the_first_differing_key_is_told_with_both_values) {
  const ConfigEntries ours{{"server.shards", "2"}, {"train.seed", "1"}};
  auto difference = [&](const ConfigEntries& theirs) {
    return first_difference(ours, "server 0", theirs, "worker 3").value_or("none");
  };
  EXPECT_EQ(difference(ours), "none");
  EXPECT_EQ(difference({{"train.seed", "1"}, {"server.shards", "2"}}), "none") << "order does not matter";
  EXPECT_EQ(difference({{"server.shards", "2"}, {"train.seed", "5"}}),
            "config key 'train.seed': server 0 has 1, worker 3 has 5");
  EXPECT_EQ(difference({{"server.shards", "2"}}), "config key 'train.seed': server 0 has 1, worker 3 has no such key");
  EXPECT_EQ(difference({{"server.shards", "2"}, {"train.seed", "1"}, {"x", "y"}}),
            "config key 'x': server 0 has no such key, worker 3 has y");
}

TEST(Admission, two_workers_have_the_same_model_and_data) {
  const Model ours{"worker 0", {{"a", {2}}}, 64, 1, 100};
  Model theirs = ours;
  theirs.from = "worker 1";
  EXPECT_EQ(first_difference(ours, theirs), std::nullopt);
  theirs.samples = 99;
  EXPECT_EQ(first_difference(ours, theirs), "training set: worker 0 has 100 samples, worker 1 has 99");
  theirs.slice_bytes = 128;
  EXPECT_EQ(first_difference(ours, theirs), "slices: worker 0 has 64 bytes, worker 1 has 128");
  theirs.tensors[0].shape = {3};
  EXPECT_EQ(first_difference(ours, theirs), "tensor 'a': worker 0 has float32[2], worker 1 has float32[3]");
}

TEST(Admission, a_worker_brings_its_model) {
  wire::RegisterT body;
  Incoming message = test::delivered(compose(Header(), wire::RegisterT(body)));
  auto model = model_of(*message.body<wire::Register>(), "worker 1");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message, "worker 1 brings no model");

  const std::vector<TensorSpec> tensors{{"a", {2}}};
  body.layout = pack_layout(tensors, 64, 1);
  message = test::delivered(compose(Header(), wire::RegisterT(body)));
  model = model_of(*message.body<wire::Register>(), "worker 1");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message,
            "worker 1: the layout's fingerprint does not match its tensors: another version of this program");

  body.layout->fingerprint = Layout(tensors, 64).fingerprint();
  body.samples = 7;
  message = test::delivered(compose(Header(), wire::RegisterT(body)));
  model = model_of(*message.body<wire::Register>(), "worker 1");
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->tensors, tensors);
  EXPECT_EQ(model->from, "worker 1");
  EXPECT_EQ(model->samples, 7U);
  EXPECT_EQ(model->slice_bytes, 64U);
}

}  // namespace
}  // namespace parley

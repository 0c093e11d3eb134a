#include "common/base/error.h"
#include "worker/models/registry.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace parley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr SampleShape kMnist{.channels = 1, .height = 28, .width = 28};

ModelOptions lenet(std::uint64_t seed) {
  return {.type = "lenet5", .input = kMnist, .classes = 10, .hidden = {}, .seed = seed};
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> list;
  for (const NamedTensor& item : model.parameters()) list.push_back(item.name);
  return list;
}

bool same_weights(const Model& one, const Model& other) {
  const auto ours = one.parameters();
  const auto theirs = other.parameters();
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!at::equal(ours[i].tensor, theirs[i].tensor)) return false;
  return true;
}

TEST(Models, Lenet5HasTheParametersOfThePaperWithReluAndMaxPooling) {
  const auto model = make_model(lenet(1));
  EXPECT_THAT(names(*model), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                         "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  std::int64_t count = 0;
  for (const NamedTensor& item : model->parameters()) count += item.tensor.numel();
  EXPECT_EQ(count, 61706);
  EXPECT_TRUE(model->buffers().empty());
  const at::Tensor logits = model->forward(at::randn({3, 1, 28, 28}));
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({3, 10}));
}

TEST(Models, MlpHasTheWidthsThatWereAskedFor) {
  const auto model = make_model({.type = "mlp", .input = {3, 4, 5}, .classes = 7, .hidden = {11, 13}, .seed = 1});
  EXPECT_THAT(names(*model), ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_EQ(model->parameters()[0].tensor.sizes(), at::IntArrayRef({11, 60}));
  EXPECT_EQ(model->forward(at::randn({2, 3, 4, 5})).sizes(), at::IntArrayRef({2, 7}));
  const auto linear = make_model({.type = "mlp", .input = {1, 2, 2}, .classes = 3, .hidden = {}, .seed = 1});
  EXPECT_EQ(linear->parameters().size(), 2U);
}

TEST(Models, InitialWeightsAreAFunctionOfTheSeed) {
  const auto first = make_model(lenet(5));
  at::randn({100});  // what ran before makes no difference
  EXPECT_TRUE(same_weights(*first, *make_model(lenet(5))));
  EXPECT_FALSE(same_weights(*first, *make_model(lenet(6))));
}

TEST(Models, WhatCannotBeBuiltIsRefused) {
  const auto message = [](const ModelOptions& options) -> std::string {
    try {
      make_model(options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  ModelOptions options = lenet(1);
  options.type = "lenet6";
  EXPECT_EQ(message(options), "model.type: found 'lenet6', expected one of mlp, lenet5");
  options = lenet(1);
  options.input = {3, 32, 32};
  EXPECT_THAT(message(options), HasSubstr("found samples of 3 x 32 x 32"));
}

}  // namespace
}  // namespace parley

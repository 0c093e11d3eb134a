#include "worker/training/module_binding.h"

#include "common/base/error.h"
#include "tests/unit/torch/bound_model.h"
#include "tests/unit/torch/tensor_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parley {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

at::Tensor trained(at::Tensor values) { return values.set_requires_grad(true); }
at::Tensor counting(std::int64_t count) { return at::arange(count, at::kFloat); }

TEST(ModuleBinding, ParametersAndGradientsAreViewsOfTheArenas) {
  const at::Tensor w = trained(counting(6).view({2, 3}));
  const at::Tensor b = trained(at::full({2}, 7.0F));
  TensorModel model({{"w", w}, {"b", b}});
  BoundModel bound(model);
  EXPECT_THAT(bound.weights("w", Clock(0)), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(w.sizes(), at::IntArrayRef({2, 3}));

  bound.place("w", bound.arenas.parameters().half(Clock(0)))[4] = 50;
  EXPECT_EQ(w[1][1].item<float>(), 50);

  bound.binding.clear_gradients();
  (w.sum() * 2 + b.sum() * 3).backward();
  EXPECT_THAT(bound.gradient("w"), Each(2));
  EXPECT_THAT(bound.gradient("b"), ElementsAre(3, 3));
  for (const auto& item : bound.binding.bound()) EXPECT_TRUE(bound.binding.gradient_in_place(item));
  bound.binding.clear_gradients();
  EXPECT_THAT(bound.gradient("w"), Each(0));
}

TEST(ModuleBinding, SelectMovesWhatForwardAndBackwardRead) {
  const at::Tensor w = trained(at::full({3}, 2.0F));
  TensorModel model({{"w", w}});
  BoundModel bound(model);
  const auto next = bound.place("w", bound.arenas.parameters().half(Clock(1)));
  next[0] = next[1] = next[2] = 5;

  // The other half is written between forward and backward, as arriving weights do: backward must not notice.
  at::Tensor loss = (w * w).sum();
  next[1] = 6;
  bound.binding.clear_gradients();
  loss.backward();
  EXPECT_THAT(bound.gradient("w"), Each(4));
  loss.reset();

  bound.binding.select(Clock(1));
  EXPECT_EQ(w[1].item<float>(), 6);
  bound.binding.clear_gradients();
  (w * w).sum().backward();
  EXPECT_THAT(bound.gradient("w"), ElementsAre(10, 12, 10));

  bound.binding.select(Clock(2));
  EXPECT_EQ(w[1].item<float>(), 2);
}

TEST(ModuleBinding, StridedTensorsBecomeContiguousWithTheSameValues) {
  const at::Tensor transposed = trained(counting(6).view({2, 3}).t());
  const at::Tensor channels_last = trained(counting(16).view({2, 2, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor inner = trained(counting(10).narrow(0, 3, 4));
  TensorModel model({{"t", transposed}, {"c", channels_last}, {"i", inner}});
  BoundModel bound(model);
  EXPECT_TRUE(transposed.is_contiguous());
  EXPECT_THAT(bound.weights("t", Clock(0)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(transposed[2][1].item<float>(), 5);
  EXPECT_TRUE(channels_last.is_contiguous());
  EXPECT_EQ(channels_last[1][0][1][1].item<float>(), 11);
  EXPECT_THAT(bound.weights("i", Clock(0)), ElementsAre(3, 4, 5, 6));

  // An expanded gradient (stride 0) arrives as values.
  bound.binding.clear_gradients();
  transposed.sum().backward();
  EXPECT_THAT(bound.gradient("t"), Each(1));
}

TEST(ModuleBinding, EmptyAndScalarTensors) {
  const at::Tensor empty = trained(at::zeros({3, 0, 2}));
  const at::Tensor scalar = trained(at::full({}, 3.0F));
  TensorModel model({{"empty", empty}, {"scalar", scalar}});
  BoundModel bound(model);
  EXPECT_EQ(bound.layout.tensors().size(), 2U);
  EXPECT_EQ(bound.binding.bound().size(), 1U);
  bound.binding.clear_gradients();
  (scalar * scalar + empty.sum()).backward();
  EXPECT_THAT(bound.gradient("scalar"), ElementsAre(6));
  EXPECT_EQ(empty.sizes(), at::IntArrayRef({3, 0, 2}));
}

TEST(ModuleBinding, AModelWithoutParametersIsBound) {
  TensorModel model({});
  BoundModel bound(model);
  EXPECT_EQ(bound.layout.slice_count(), 0U);
  bound.binding.clear_gradients();
  bound.binding.select(Clock(1));
}

TEST(ModuleBinding, BuffersAreLoadedAndPublishedNotWrittenInPlace) {
  const at::Tensor w = trained(at::ones({2}));
  const at::Tensor mean = at::full({3}, 1.5F);
  TensorModel model({{"w", w}}, {{"mean", mean}});
  BoundModel bound(model);
  EXPECT_EQ(bound.layout.slices().back().kind, TensorKind::buffer);
  mean.add_(1);  // what a forward pass does
  EXPECT_THAT(bound.weights("mean", Clock(0)), Each(1.5F));
  bound.binding.publish_buffers();
  EXPECT_THAT(bound.gradient("mean"), Each(2.5F));
  EXPECT_THAT(bound.gradient("w"), Each(0));

  bound.place("mean", bound.arenas.parameters().half(Clock(1)))[1] = 9;
  bound.binding.select(Clock(1));
  EXPECT_EQ(mean[1].item<float>(), 9);
}

TEST(ModelTensors, TiedTensorsTakePartOnceAndFrozenOnesDoNot) {
  const at::Tensor tied = trained(at::ones({4}));
  const at::Tensor frozen = at::ones({2});
  TensorModel model({{"embedding", tied}, {"frozen", frozen}, {"output", tied}});
  BoundModel bound(model);
  ASSERT_EQ(bound.layout.tensors().size(), 1U);
  EXPECT_EQ(bound.layout.tensor(0).name, "embedding");
  bound.binding.clear_gradients();
  (tied.sum() + (tied * 2).sum()).backward();
  EXPECT_THAT(bound.gradient("embedding"), Each(3));
  bound.binding.select(Clock(1));
  EXPECT_EQ(frozen[0].item<float>(), 1);
}

TEST(ModelTensors, PatternsChooseTheGroupWithoutDecay) {
  TensorModel model({{"conv.weight", trained(at::ones({2}))},
                     {"conv.bias", trained(at::ones({2}))},
                     {"norm.scale", trained(at::ones({2}))}});
  const auto tensors = collect_tensors(model, {"*.bias", "norm.*"});
  EXPECT_EQ(tensors[0].spec.group, 0U);
  EXPECT_EQ(tensors[1].spec.group, kNoDecayGroup);
  EXPECT_EQ(tensors[2].spec.group, kNoDecayGroup);
}

void expect_refused(TensorModel model, const std::string& name, const std::string& found) {
  try {
    collect_tensors(model, {});
    FAIL() << "accepted '" << name << "'";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'" + name + "'"));
    EXPECT_THAT(error.what(), HasSubstr(found));
    EXPECT_THAT(error.what(), HasSubstr("expected"));
  }
}

TEST(ModelTensors, WhatTheArenaCannotHoldIsRefusedByName) {
  const auto typed = [](at::ScalarType type) { return trained(at::zeros({2}, type)); };
  expect_refused(TensorModel({{"d", typed(at::kDouble)}}), "d", "float64");
  expect_refused(TensorModel({{"h", typed(at::kHalf)}}), "h", "float16");
  expect_refused(TensorModel({{"b", typed(at::kBFloat16)}}), "b", "bfloat16");
  expect_refused(TensorModel({{"c", typed(at::kComplexFloat)}}), "c", "complex64");
  expect_refused(TensorModel({}, {{"steps", at::zeros({}, at::kLong)}}), "steps", "int64");
  expect_refused(TensorModel({}, {{"mask", at::zeros({3}, at::kBool)}}), "mask", "bool");
  expect_refused(TensorModel({{"s", trained(at::ones({2, 2}).to_sparse())}}), "s", "sparse");
  expect_refused(TensorModel({{"e", trained(at::ones({1}).expand({4}))}}), "e", "expanded");
  expect_refused(TensorModel({{"u", trained(at::ones({2})) * 2}}), "u", "computed");
  const at::Tensor whole = at::ones({4});
  expect_refused(TensorModel({{"a", trained(whole.narrow(0, 0, 3))}, {"z", trained(whole.narrow(0, 2, 2))}}), "z",
                 "memory shared with 'a'");
  EXPECT_EQ(collect_tensors(TensorModel({{"a", trained(whole.narrow(0, 0, 2).detach())},
                                         {"z", trained(whole.narrow(0, 2, 2).detach())}}),
                            {})
                .size(),
            2U);
}

}  // namespace
}  // namespace parley

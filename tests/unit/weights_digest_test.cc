#include "common/layout/weights_digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace parley {
namespace {

TEST(WeightsDigest, CoversParametersInOrderAndNothingElse) {
  const Layout layout({{.name = "b", .shape = {2}},
                       {.name = "a", .shape = {3}},
                       {.name = "mean", .shape = {1}, .kind = TensorKind::buffer}},
                      64);
  std::vector<float> weights(layout.arena_count(), 0.0F);
  const auto at = [&](const char* name) -> float& { return weights[layout.place(layout.find(name).value()).offset]; };
  const std::string zero = weights_digest(layout, weights);
  EXPECT_EQ(zero.size(), 32U);
  at("mean") = 1;
  weights[layout.place(0).offset + layout.place(0).count] = 1;  // padding
  EXPECT_EQ(weights_digest(layout, weights), zero);
  at("a") = 1;
  const std::string in_a = weights_digest(layout, weights);
  at("a") = 0;
  at("b") = 1;
  EXPECT_NE(in_a, zero);
  EXPECT_NE(weights_digest(layout, weights), in_a);
  at("b") = -0.0F;  // bits count, not values
  EXPECT_NE(weights_digest(layout, weights), zero);
}

TEST(WeightsDigest, DoesNotDependOnTheSlices) {
  const std::vector<TensorSpec> tensors{{.name = "w", .shape = {100}}, {.name = "b", .shape = {3}}};
  const Layout small(tensors, 64);
  const Layout large(tensors, 1 << 20);
  std::vector<float> weights(small.arena_count(), 0.25F);
  EXPECT_EQ(weights_digest(small, weights), weights_digest(large, weights));
}

}  // namespace
}  // namespace parley

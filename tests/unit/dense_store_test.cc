#include "server/core/dense_store.h"

#include "tests/support/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::Each;
using testing::ElementsAre;
using Values = std::vector<float>;
using Present = std::vector<std::uint8_t>;

// Slice 0: 'b' and 'a' (two values each, the second at 16); slice 1: 'decayed' of group 1; slice 2: the buffer.
const std::vector<TensorSpec> kModel{{"a", {2}},
                                     {"decayed", {2}, ElementType::float32, TensorKind::parameter, 1},
                                     {"running", {2}, ElementType::float32, TensorKind::buffer},
                                     {"b", {2}}};

StoreOptions plain_sgd() {
  StoreOptions options;
  options.schedule.base_rate = 1;
  return options;
}

class DenseStoreTest : public testing::Test {
 protected:
  explicit DenseStoreTest(const StoreOptions& options = plain_sgd()) : store(options, layout, slices) {
    for (const SliceId slice : slices) store.initialize(slice, Values(layout.slice(slice).count, 0.0F));
  }

  // A push of the whole of slice 0 with these values for 'b' and 'a'.
  Contribution push(std::uint32_t rank, const Values& b, const Values& a, std::uint64_t samples = 1,
                    Present present = {1, 1}) {
    Values& memory = gradients.emplace_back(32, std::numeric_limits<float>::quiet_NaN());  // padding is never read
    std::ranges::copy(b, memory.begin());
    std::ranges::copy(a, memory.begin() + 16);
    return {Rank(rank), samples, presents.emplace_back(std::move(present)), memory};
  }

  std::optional<std::string> step(const std::vector<Contribution>& pushes, SliceId slice = SliceId(0)) {
    auto fault = store.gather(slice, pushes);
    if (!fault) store.apply(slice, Clock(store.version(slice).value), 1.0, 1.0F);
    return fault;
  }
  Values b() const { return {store.values(SliceId(0)).begin(), store.values(SliceId(0)).begin() + 2}; }
  Values a() const { return {store.values(SliceId(0)).begin() + 16, store.values(SliceId(0)).begin() + 18}; }

  const Layout layout{kModel, 128};
  const std::vector<SliceId> slices{SliceId(0), SliceId(1), SliceId(2)};
  DenseStore store;
  std::deque<Values> gradients;
  std::deque<Present> presents;
};

TEST_F(DenseStoreTest, the_model_is_cut_as_these_tests_think) {
  ASSERT_EQ(layout.slice_count(), 3U);
  EXPECT_EQ(layout.slice(SliceId(0)).parts.size(), 2U);
  EXPECT_EQ(layout.slice(SliceId(1)).group, 1U);
  EXPECT_EQ(layout.slice(SliceId(2)).kind, TensorKind::buffer);
}

TEST_F(DenseStoreTest, a_step_makes_the_next_version_from_the_mean) {
  EXPECT_EQ(step({push(0, {1, 2}, {3, 4}), push(1, {3, 2}, {1, 0})}), std::nullopt);
  EXPECT_EQ(store.version(SliceId(0)), Version(1));
  EXPECT_THAT(b(), ElementsAre(-2, -2));
  EXPECT_THAT(a(), ElementsAre(-2, -2));
  EXPECT_EQ(store.version(SliceId(1)), Version(0)) << "slices move on by themselves";
}

TEST_F(DenseStoreTest, the_sum_goes_in_rank_order) {
  step({push(0, {1e8F, 0}, {0, 0}), push(1, {1, 0}, {0, 0}), push(2, {-1e8F, 0}, {0, 0})});
  const float in_order = ((1e8F + 1.0F) + -1e8F) * (1.0F / 3.0F);
  ASSERT_NE(in_order, 1.0F * (1.0F / 3.0F)) << "the numbers tell orders apart";
  EXPECT_EQ(b()[0], -in_order);
}

TEST_F(DenseStoreTest, samples_are_weights) {
  step({push(0, {4, 0}, {0, 0}, 1), push(1, {8, 0}, {0, 0}, 3), push(2, {1000, 0}, {0, 0}, 0)});
  EXPECT_EQ(b()[0], -7.0F);
  step({push(0, {0, 0}, {0, 0}, 0, {})});
  EXPECT_EQ(b()[0], -7.0F) << "an empty share changes nothing";
  EXPECT_EQ(store.version(SliceId(0)), Version(2)) << "but is a step";
}

TEST_F(DenseStoreTest, a_tensor_without_a_gradient_is_left_alone) {
  step({push(0, {2, 2}, {9, 9}, 1, {1, 0}), push(1, {9, 9}, {9, 9}, 1, {0, 0})});
  EXPECT_THAT(b(), ElementsAre(-1, -1)) << "the samples of a worker without a gradient count";
  EXPECT_THAT(a(), ElementsAre(0, 0));
  EXPECT_THAT(store.optimizer(SliceId(0)).steps(), ElementsAre(1, 0));
  step({push(0, {}, {}, 1, {}), push(1, {}, {1, 1}, 1, {0, 1})});
  EXPECT_THAT(b(), ElementsAre(-1, -1));
  EXPECT_THAT(a(), ElementsAre(-0.5, -0.5));
  EXPECT_THAT(store.optimizer(SliceId(0)).steps(), ElementsAre(1, 1));
}

TEST_F(DenseStoreTest, a_buffer_takes_the_lowest_ranks_value) {
  const Present one{1};
  const Values low(16, 3.0F);
  const Values high(16, 5.0F);
  step({{Rank(0), 1, {}, {}}, {Rank(1), 1, one, low}, {Rank(2), 1, one, high}}, SliceId(2));
  EXPECT_EQ(store.values(SliceId(2))[0], 3.0F);
  EXPECT_EQ(store.values(SliceId(2))[1], 3.0F);
  store.gather(SliceId(2), std::vector<Contribution>{{Rank(0), 1, one, high}});
  EXPECT_EQ(store.sum_of_squares(SliceId(2)), 0.0) << "a buffer is no part of the gradient's norm";
  store.apply(SliceId(2), Clock(1), 0.5, 0.5F);
  EXPECT_EQ(store.values(SliceId(2))[0], 5.0F) << "and is neither scaled nor clipped";
}

class DenseStoreGroupsTest : public DenseStoreTest {
 protected:
  static StoreOptions options() {
    StoreOptions options = plain_sgd();
    options.groups = {{0.0, 1.0}, {0.5, 2.0}};
    return options;
  }
  DenseStoreGroupsTest() : DenseStoreTest(options()) {}
};

TEST_F(DenseStoreGroupsTest, each_group_has_its_own_options) {
  step({push(0, {1, 1}, {1, 1})});
  EXPECT_THAT(b(), ElementsAre(-1, -1));
  const Present one{1};
  const Values gradient(16, 1.0F);
  for (int i = 0; i < 2; ++i) step({{Rank(0), 1, one, gradient}}, SliceId(1));
  // Rate 2: 0 - 2 * 1 = -2, then -2 - 2 * (1 + 0.5 * -2) = -2.
  EXPECT_EQ(store.values(SliceId(1))[0], -2.0F);
}

TEST_F(DenseStoreTest, rate_and_gradient_can_be_scaled) {
  ASSERT_EQ(store.gather(SliceId(0), std::vector<Contribution>{push(0, {8, 4}, {0, 2})}), std::nullopt);
  EXPECT_EQ(store.sum_of_squares(SliceId(0)), 84.0) << "over values, not over padding";
  store.apply(SliceId(0), Clock(0), 0.5, 0.25F);
  EXPECT_THAT(b(), ElementsAre(-1, -0.5));
  ASSERT_EQ(store.gather(SliceId(0), std::vector<Contribution>{push(0, {8, 4}, {1, 1}, 1, {0, 1})}), std::nullopt);
  EXPECT_EQ(store.sum_of_squares(SliceId(0)), 2.0) << "only what has a gradient";
}

TEST_F(DenseStoreTest, the_clock_selects_the_rate) {
  StoreOptions options = plain_sgd();
  options.schedule.kind = ScheduleKind::step;
  options.schedule.gamma = 0.5;
  DenseStore scheduled(options, layout, slices);
  scheduled.initialize(SliceId(0), Values(32, 0.0F));
  ASSERT_EQ(scheduled.gather(SliceId(0), std::vector<Contribution>{push(0, {1, 1}, {1, 1})}), std::nullopt);
  scheduled.apply(SliceId(0), Clock(3), 1.0, 1.0F);
  EXPECT_EQ(scheduled.values(SliceId(0))[0], -0.125F);
}

TEST_F(DenseStoreTest, a_skipped_clock_advances_the_version_and_nothing_else) {
  step({push(0, {1, 2}, {3, 4})});
  store.skip(SliceId(0));
  EXPECT_EQ(store.version(SliceId(0)), Version(2));
  EXPECT_THAT(b(), ElementsAre(-1, -2));
  EXPECT_THAT(store.optimizer(SliceId(0)).steps(), ElementsAre(1, 1));
}

TEST_F(DenseStoreTest, a_non_finite_gradient_is_named_before_anything_changes) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(step({push(0, {1, 1}, {1, 1}), push(2, {1, 1}, {1, kNan})}),
            "gradient of worker 2 is not finite: tensor 'a' has nan at element 1");
  EXPECT_EQ(step({push(0, {-kInf, 1}, {1, 1})}),
            "gradient of worker 0 is not finite: tensor 'b' has -inf at element 0");
  EXPECT_EQ(step({push(0, {3e38F, 1}, {1, 1}), push(1, {3e38F, 1}, {1, 1})}),
            "the mean of the workers' gradients overflows float32: tensor 'b'");
  EXPECT_EQ(step({push(0, {kNan, 1}, {1, 1}, 0), push(1, {1, 1}, {1, 1})}), std::nullopt)
      << "an empty share is not looked at";
  EXPECT_EQ(store.version(SliceId(0)), Version(1));
  EXPECT_THAT(b(), ElementsAre(-1, -1));
}

TEST(DenseStore, an_element_is_counted_from_the_start_of_its_tensor) {
  const Layout layout({{"long", {40}}}, 64);
  DenseStore store(plain_sgd(), layout, std::vector<SliceId>{SliceId(2)});
  EXPECT_TRUE(store.owns(SliceId(2)));
  EXPECT_FALSE(store.owns(SliceId(0)));
  Values gradient(16, 0.0F);
  gradient[5] = std::numeric_limits<float>::quiet_NaN();
  const Present one{1};
  EXPECT_EQ(store.gather(SliceId(2), std::vector<Contribution>{{Rank(1), 1, one, gradient}}),
            "gradient of worker 1 is not finite: tensor 'long' has nan at element 37");
}

TEST_F(DenseStoreTest, two_versions_can_be_lent_and_stay_as_they_were) {
  EXPECT_FALSE(store.lend(SliceId(0), Version(1)).has_value());
  step({push(0, {1, 1}, {1, 1})});
  const auto first = store.lend(SliceId(0), Version(0));
  const auto second = store.lend(SliceId(0), Version(1));
  ASSERT_TRUE(first && second);
  for (int i = 0; i < 5; ++i) step({push(0, {1, 1}, {1, 1})});
  EXPECT_EQ(test::floats(*first)[0], 0.0F);
  EXPECT_EQ(test::floats(*second)[0], -1.0F);
  EXPECT_TRUE(store.lend(SliceId(0), Version(6)).has_value());
  EXPECT_TRUE(store.lend(SliceId(0), Version(5)).has_value());
  EXPECT_FALSE(store.lend(SliceId(0), Version(4)).has_value());
  EXPECT_FALSE(store.lend(SliceId(0), Version(7)).has_value());
}

TEST(DenseStore, a_slice_without_first_values_is_not_lent) {
  const Layout layout({{"a", {1}}}, 64);
  DenseStore store(plain_sgd(), layout, std::vector<SliceId>{SliceId(0)});
  EXPECT_FALSE(store.initialized(SliceId(0)));
  EXPECT_FALSE(store.lend(SliceId(0), Version(0)).has_value());
  store.initialize(SliceId(0), Values(16, 2.0F));
  EXPECT_TRUE(store.initialized(SliceId(0)));
  const auto frame = store.lend(SliceId(0), Version(0));
  ASSERT_TRUE(frame.has_value());
  EXPECT_THAT(test::floats(*frame), Each(2.0F));
}

}  // namespace
}  // namespace parley

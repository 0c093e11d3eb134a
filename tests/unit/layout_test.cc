#include "common/layout/layout.h"

#include "common/base/error.h"
#include "common/base/random.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kFloat = ElementType::float32;
constexpr auto kParameter = TensorKind::parameter;
constexpr auto kBuffer = TensorKind::buffer;

std::vector<std::string> names(const Layout& layout) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : layout.tensors()) names.push_back(tensor.name);
  return names;
}

// Invariants 2 to 4 and that slices and parts say where every value of every tensor lies, once.
void check(const Layout& layout) {
  std::vector<std::uint64_t> seen(layout.tensors().size(), 0);
  std::uint64_t end = 0;
  for (const Slice& slice : layout.slices()) {
    ASSERT_GE(slice.offset, end) << "slices overlap";
    ASSERT_EQ(slice.offset * sizeof(float) % kTensorAlignmentBytes, 0U);
    ASSERT_GT(slice.count, 0U);
    ASSERT_LE(slice.bytes(), layout.slice_bytes());
    ASSERT_FALSE(slice.parts.empty());
    end = slice.offset + slice.count;
    std::uint64_t part_end = 0;
    for (const SlicePart& part : slice.parts) {
      const TensorSpec& tensor = layout.tensor(part.tensor);
      ASSERT_EQ(tensor.group, slice.group) << tensor.name;
      ASSERT_EQ(tensor.kind, slice.kind) << tensor.name;
      ASSERT_GE(part.begin, part_end) << "parts overlap";
      ASSERT_GT(part.count, 0U);
      part_end = part.begin + part.count;
      const TensorPlace& place = layout.place(part.tensor);
      ASSERT_EQ(slice.offset + part.begin, place.offset + seen[part.tensor])
          << "the parts of a tensor follow one another";
      seen[part.tensor] += part.count;
    }
    ASSERT_LE(part_end, slice.count);
  }
  ASSERT_LE(end, layout.arena_count());
  std::uint64_t values = 0;
  for (std::uint32_t index = 0; index < layout.tensors().size(); ++index) {
    ASSERT_EQ(layout.place(index).offset * sizeof(float) % kTensorAlignmentBytes, 0U);
    ASSERT_EQ(layout.place(index).count, layout.tensor(index).element_count());
    ASSERT_EQ(seen[index], layout.place(index).count) << layout.tensor(index).name;
    values += seen[index];
  }
  ASSERT_EQ(layout.value_count(), values);
}

TEST(Layout, order_is_the_reverse_of_registration) {
  const Layout layout({{"a", {2}}, {"b", {3}}, {"c", {1}}}, 64);
  EXPECT_THAT(names(layout), ElementsAre("c", "b", "a"));
  EXPECT_EQ(layout.find("a"), 2U);
  EXPECT_EQ(layout.find("d"), std::nullopt);
  check(layout);
}

TEST(Layout, groups_lie_together_and_buffers_last) {
  const Layout layout({{"weight1", {2}, kFloat, kParameter, 0},
                       {"running1", {2}, kFloat, kBuffer, 0},
                       {"bias1", {2}, kFloat, kParameter, 7},
                       {"weight2", {2}, kFloat, kParameter, 0},
                       {"running2", {2}, kFloat, kBuffer, 7},
                       {"bias2", {2}, kFloat, kParameter, 7}},
                      1024);
  EXPECT_THAT(names(layout), ElementsAre("bias2", "bias1", "weight2", "weight1", "running2", "running1"));
  // bias, weight, and a slice for each group of the buffers.
  ASSERT_EQ(layout.slice_count(), 4U);
  EXPECT_EQ(layout.slice(SliceId(0)).group, 7U);
  EXPECT_EQ(layout.slice(SliceId(1)).group, 0U);
  EXPECT_EQ(layout.slice(SliceId(2)).kind, kBuffer);
  EXPECT_EQ(layout.slice(SliceId(3)).kind, kBuffer);
  check(layout);
}

TEST(Layout, every_tensor_starts_on_64_bytes_and_small_ones_share_a_slice) {
  const Layout layout({{"a", {3}}, {"b", {17}}, {"c", {1}}}, 256);
  EXPECT_EQ(layout.place(0).offset, 0U);   // c
  EXPECT_EQ(layout.place(1).offset, 16U);  // b
  EXPECT_EQ(layout.place(2).offset, 48U);  // a
  EXPECT_EQ(layout.arena_count(), 64U);
  EXPECT_EQ(layout.value_count(), 21U);
  ASSERT_EQ(layout.slice_count(), 1U);
  EXPECT_EQ(layout.slice(SliceId(0)).parts.size(), 3U);
  check(layout);
}

TEST(Layout, a_large_tensor_spans_slices_and_its_neighbours_fill_them) {
  const Layout layout({{"after", {4}}, {"large", {50}}, {"before", {16}}}, 128);
  // 32 floats a slice: before (16) + large[0, 16), large[16, 48), large[48, 50) + after.
  ASSERT_EQ(layout.slice_count(), 3U);
  EXPECT_EQ(layout.slice(SliceId(0)).parts[1].count, 16U);
  EXPECT_EQ(layout.slice(SliceId(1)).parts[0].count, 32U);
  EXPECT_EQ(layout.slice(SliceId(2)).parts[0].count, 2U);
  EXPECT_EQ(layout.slice(SliceId(2)).parts[1].begin, 16U);
  EXPECT_EQ(layout.slice(SliceId(2)).count, 32U);
  check(layout);
}

TEST(Layout, a_scalar_has_one_value_and_an_empty_tensor_none) {
  const Layout layout({{"scalar", {}}, {"empty", {3, 0, 2}}, {"one", {1, 1}}}, 64);
  EXPECT_EQ(layout.value_count(), 2U);
  EXPECT_EQ(layout.slice_count(), 2U);
  EXPECT_EQ(layout.place(*layout.find("empty")).count, 0U);
  for (const Slice& slice : layout.slices())
    for (const SlicePart& part : slice.parts) EXPECT_NE(layout.tensor(part.tensor).name, "empty");
  check(layout);
  const Layout nothing({{"empty", {0}}}, 64);
  EXPECT_EQ(nothing.slice_count(), 0U);
  EXPECT_EQ(nothing.arena_count(), 0U);
  EXPECT_EQ(Layout({}, 64).slice_count(), 0U);
}

TEST(Layout, any_model_keeps_the_invariants) {
  RandomStream random(3, 1);
  for (int round = 0; round < 300; ++round) {
    std::vector<TensorSpec> tensors;
    const std::uint64_t count = random.below(30);
    for (std::uint64_t i = 0; i < count; ++i) {
      TensorSpec tensor{fmt::format("t{}", i), {}};
      for (std::uint64_t dim = random.below(4); dim > 0; --dim)
        tensor.shape.push_back(static_cast<std::int64_t>(random.below(9)));
      tensor.group = static_cast<std::uint32_t>(random.below(3));
      tensor.kind = random.below(4) == 0 ? kBuffer : kParameter;
      tensors.push_back(tensor);
    }
    const Layout layout(tensors, 64 * (1 + random.below(8)));
    ASSERT_NO_FATAL_FAILURE(check(layout)) << "round " << round;
  }
}

TEST(Layout, the_fingerprint_tells_every_difference) {
  const std::vector<TensorSpec> model{{"a", {2, 3}}, {"b", {6}}};
  std::set<std::uint64_t> seen{Layout(model, 64).fingerprint()};
  EXPECT_EQ(seen.count(Layout(model, 64).fingerprint()), 1U);
  auto is_new = [&](const std::vector<TensorSpec>& other, std::uint64_t slice_bytes) {
    return seen.insert(Layout(other, slice_bytes).fingerprint()).second;
  };
  EXPECT_TRUE(is_new(model, 128)) << "slice size";
  EXPECT_TRUE(is_new({{"c", {2, 3}}, {"b", {6}}}, 64)) << "name";
  EXPECT_TRUE(is_new({{"a", {3, 2}}, {"b", {6}}}, 64)) << "shape of the same size";
  EXPECT_TRUE(is_new({{"a", {6}}, {"b", {6}}}, 64)) << "number of dimensions";
  EXPECT_TRUE(is_new({{"a", {2, 3}, kFloat, kParameter, 1}, {"b", {6}}}, 64)) << "group";
  EXPECT_TRUE(is_new({{"a", {2, 3}, kFloat, kBuffer, 0}, {"b", {6}}}, 64)) << "kind";
  EXPECT_TRUE(is_new({{"b", {6}}, {"a", {2, 3}}}, 64)) << "order";
  EXPECT_TRUE(is_new({{"a", {2, 3}}}, 64)) << "number of tensors";
}

TEST(Layout, twenty_thousand_tensors_are_no_trouble) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 20'000; ++i) tensors.push_back({fmt::format("layer{}.weight", i), {64, 3}});
  const Layout layout(tensors, 1 << 20);
  EXPECT_EQ(layout.tensors().size(), 20'000U);
  EXPECT_EQ(layout.value_count(), 20'000U * 192);
  EXPECT_EQ(layout.slice_count(), 15U);
  check(layout);
}

TEST(Layout, refuses_models_that_cannot_be) {
  auto refusal = [](const std::vector<TensorSpec>& tensors) -> std::string {
    try {
      const Layout layout(tensors, 64);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({{"a", {1}}, {"a", {2}}}), HasSubstr("two tensors are named 'a'"));
  EXPECT_THAT(refusal({{"", {1}}}), HasSubstr("without a name"));
  EXPECT_THAT(refusal({{"a", {2, -3}}}), HasSubstr("tensor 'a': found dimension -3"));
  EXPECT_THAT(refusal({{"a", {1LL << 40, 1LL << 40}}}), HasSubstr("tensor 'a': shape [1099511627776, 1099511627776]"));
  EXPECT_THAT(refusal({{"a", {1LL << 43}}, {"b", {1LL << 43}}, {"c", {1}}}), HasSubstr("more than 2^44 elements"));
}

TEST(Layout, the_first_difference_is_told_in_words) {
  using Tensors = std::vector<TensorSpec>;
  const Tensors ours{{"a", {2, 3}}, {"b", {6}}};
  auto difference = [&](const Tensors& theirs) {
    return first_difference(ours, "worker 0", theirs, "worker 1").value_or("none");
  };
  EXPECT_EQ(difference(ours), "none");
  EXPECT_EQ(difference({{"a", {2, 4}}, {"b", {6}}}),
            "tensor 'a': worker 0 has float32[2, 3], worker 1 has float32[2, 4]");
  EXPECT_EQ(difference({{"a", {2, 3}}}), "tensor 'b': worker 0 has float32[6], worker 1 has no such tensor");
  EXPECT_EQ(difference({{"a", {2, 3}}, {"b", {6}}, {"c", {}}}),
            "tensor 'c': worker 0 has no such tensor, worker 1 has float32[]");
  EXPECT_EQ(difference({{"a", {2, 3}}, {"b", {6}, kFloat, kBuffer, 2}}),
            "tensor 'b': worker 0 has it as parameter of group 0, worker 1 as buffer of group 2");
  EXPECT_EQ(difference({{"b", {6}}, {"a", {2, 3}}}), "tensor 0 in order: worker 0 has 'a', worker 1 has 'b'");
}

}  // namespace
}  // namespace parley

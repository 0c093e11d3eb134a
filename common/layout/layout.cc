#include "common/layout/layout.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace parley {
namespace {

constexpr std::uint64_t kAlignmentCount = kTensorAlignmentBytes / sizeof(float);
// 2^44 elements (64 TiB of float32): far above every machine, far below an overflow of byte offsets.
constexpr std::uint64_t kArenaCountMax = std::uint64_t{1} << 44;

std::uint64_t align_up(std::uint64_t count) {
  return (count + kAlignmentCount - 1) / kAlignmentCount * kAlignmentCount;
}

void check_tensor(const TensorSpec& tensor) {
  if (tensor.name.empty()) throw UsageError("model: found a tensor without a name");
  std::uint64_t count = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0)
      throw UsageError(fmt::format("model: tensor '{}': found dimension {}, expected 0 or more", tensor.name, extent));
    if (extent != 0 && count > kArenaCountMax / static_cast<std::uint64_t>(extent))
      throw UsageError(fmt::format("model: tensor '{}': shape [{}] has more than 2^44 elements", tensor.name,
                                   fmt::join(tensor.shape, ", ")));
    count *= static_cast<std::uint64_t>(extent);
  }
}

// Reverse of registration, parameter groups together, buffers last.
std::vector<TensorSpec> arena_order(const std::vector<TensorSpec>& registered) {
  std::vector<TensorSpec> ordered(registered.rbegin(), registered.rend());
  std::unordered_map<std::uint32_t, std::uint64_t> group_rank;
  for (const TensorSpec& tensor : ordered)
    if (tensor.kind == TensorKind::parameter) group_rank.try_emplace(tensor.group, group_rank.size());
  std::ranges::stable_sort(ordered, {}, [&](const TensorSpec& tensor) {
    return tensor.kind == TensorKind::buffer ? std::numeric_limits<std::uint64_t>::max() : group_rank.at(tensor.group);
  });
  return ordered;
}

std::uint64_t hash_layout(std::span<const TensorSpec> tensors, std::uint64_t slice_bytes) {
  std::string text = fmt::format("parley layout 1;{};", slice_bytes);
  for (const TensorSpec& tensor : tensors)
    text += fmt::format("{}:{}:{};{};{};{};", tensor.name.size(), tensor.name, fmt::join(tensor.shape, ","),
                        static_cast<int>(tensor.type), static_cast<int>(tensor.kind), tensor.group);
  return XXH64(text.data(), text.size(), 0);
}

}  // namespace

const char* element_type_name(ElementType type) { return type == ElementType::float32 ? "float32" : "unknown"; }

std::uint64_t TensorSpec::element_count() const {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
  return count;
}

std::string describe(const TensorSpec& tensor) {
  return fmt::format("{}[{}]", element_type_name(tensor.type), fmt::join(tensor.shape, ", "));
}

Layout::Layout(const std::vector<TensorSpec>& registered, std::uint64_t slice_bytes) : slice_bytes_(slice_bytes) {
  PARLEY_CHECK(slice_bytes > 0 && slice_bytes % kTensorAlignmentBytes == 0, "slice_bytes = {}", slice_bytes);
  std::unordered_set<std::string> names;
  for (const TensorSpec& tensor : registered) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second)
      throw UsageError(fmt::format("model: two tensors are named '{}'", tensor.name));
  }
  tensors_ = arena_order(registered);
  place_tensors();
  cut_slices();
  fingerprint_ = hash_layout(tensors_, slice_bytes_);
}

void Layout::place_tensors() {
  for (const TensorSpec& tensor : tensors_) {
    const std::uint64_t count = tensor.element_count();
    places_.push_back({arena_count_, count});
    arena_count_ += align_up(count);
    value_count_ += count;
    if (arena_count_ > kArenaCountMax)
      throw UsageError(fmt::format("model: more than 2^44 elements up to tensor '{}'", tensor.name));
  }
}

void Layout::cut_slices() {
  const std::uint64_t slice_count_max = slice_bytes_ / sizeof(float);
  for (std::uint32_t index = 0; index < tensors_.size(); ++index) {
    const TensorSpec& tensor = tensors_[index];
    const TensorPlace& where = places_[index];
    std::uint64_t done = 0;
    while (done < where.count) {
      const bool opens = slices_.empty() || slices_.back().group != tensor.group ||
                         slices_.back().kind != tensor.kind || slices_.back().count >= slice_count_max;
      if (opens) slices_.push_back({where.offset + done, 0, tensor.group, tensor.kind, {}});
      Slice& slice = slices_.back();
      const std::uint64_t begin = slice.count;
      const std::uint64_t count = std::min(where.count - done, slice_count_max - begin);
      slice.parts.push_back({index, begin, count});
      slice.count = align_up(begin + count);
      done += count;
    }
  }
}

std::optional<std::uint32_t> Layout::find(const std::string& name) const {
  for (std::uint32_t index = 0; index < tensors_.size(); ++index)
    if (tensors_[index].name == name) return index;
  return std::nullopt;
}

std::optional<std::string> first_difference(std::span<const TensorSpec> ours, const std::string& our_name,
                                            std::span<const TensorSpec> theirs, const std::string& their_name) {
  std::unordered_map<std::string, const TensorSpec*> by_name;
  for (const TensorSpec& tensor : theirs) by_name.emplace(tensor.name, &tensor);
  for (const TensorSpec& tensor : ours) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end())
      return fmt::format("tensor '{}': {} has {}, {} has no such tensor", tensor.name, our_name, describe(tensor),
                         their_name);
    const TensorSpec& other = *found->second;
    if (tensor.shape != other.shape || tensor.type != other.type)
      return fmt::format("tensor '{}': {} has {}, {} has {}", tensor.name, our_name, describe(tensor), their_name,
                         describe(other));
    if (tensor.kind != other.kind || tensor.group != other.group)
      return fmt::format("tensor '{}': {} has it as {} of group {}, {} as {} of group {}", tensor.name, our_name,
                         tensor.kind == TensorKind::buffer ? "buffer" : "parameter", tensor.group, their_name,
                         other.kind == TensorKind::buffer ? "buffer" : "parameter", other.group);
    by_name.erase(found);
  }
  for (const TensorSpec& tensor : theirs)
    if (by_name.contains(tensor.name))
      return fmt::format("tensor '{}': {} has no such tensor, {} has {}", tensor.name, our_name, their_name,
                         describe(tensor));
  for (std::size_t index = 0; index < ours.size(); ++index)
    if (ours[index].name != theirs[index].name)
      return fmt::format("tensor {} in order: {} has '{}', {} has '{}'", index, our_name, ours[index].name, their_name,
                         theirs[index].name);
  return std::nullopt;
}

}  // namespace parley

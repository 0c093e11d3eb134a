#include "worker/training/model_tensors.h"

#include "common/base/error.h"

#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>

#include <algorithm>
#include <fnmatch.h>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace parley {
namespace {

// The names that people know from torch and numpy.
std::string_view element_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default:
      return c10::toString(type);
  }
}

[[noreturn]] void refuse(TensorKind kind, const std::string& name, std::string_view found, std::string_view expected) {
  throw UsageError(fmt::format("model: {} '{}': found {}, expected {}",
                               kind == TensorKind::buffer ? "buffer" : "parameter", name, found, expected));
}

void check_tensor(TensorKind kind, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(kind, name, "no tensor", "float32 elements");
  if (tensor.layout() != at::kStrided) refuse(kind, name, "a sparse or otherwise compressed tensor", "a dense one");
  if (tensor.scalar_type() != at::kFloat)
    refuse(kind, name, fmt::format("{} elements", element_name(tensor.scalar_type())), "float32");
  if (kind == TensorKind::parameter && !tensor.is_leaf())
    refuse(kind, name, "a tensor computed from others", "a leaf of the graph");
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    refuse(kind, name, "an expanded tensor, several elements of which share memory", "an address for each element");
}

// Two tensors of their own that share memory would be two copies after binding, so one that the user ties by hand would
// come untied without a word.
void refuse_shared_memory(const std::vector<ModelTensor>& tensors) {
  struct Range {
    const float* begin;
    const float* end;
    const ModelTensor* owner;
  };
  std::vector<Range> ranges;
  for (const ModelTensor& item : tensors) {
    if (item.tensor.numel() == 0) continue;
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < item.tensor.dim(); ++i) last += (item.tensor.size(i) - 1) * item.tensor.stride(i);
    const float* const begin = item.tensor.const_data_ptr<float>();
    ranges.push_back({begin, begin + last + 1, &item});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      refuse(ranges[i].owner->spec.kind, ranges[i].owner->spec.name,
             fmt::format("memory shared with '{}'", ranges[i - 1].owner->spec.name),
             "memory of its own, or one tensor registered under both names");
}

}  // namespace

std::vector<ModelTensor> collect_tensors(const Model& model, const std::vector<std::string>& no_decay) {
  std::vector<ModelTensor> tensors;
  std::unordered_set<const c10::TensorImpl*> seen;
  const auto collect = [&](const NamedTensor& item, TensorKind kind) {
    check_tensor(kind, item.name, item.tensor);
    if (!seen.insert(item.tensor.unsafeGetTensorImpl()).second) return;
    const bool matches =
        kind == TensorKind::parameter && std::ranges::any_of(no_decay, [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), item.name.c_str(), 0) == 0;
        });
    tensors.push_back({{.name = item.name,
                        .shape = item.tensor.sizes().vec(),
                        .type = ElementType::float32,
                        .kind = kind,
                        .group = matches ? kNoDecayGroup : 0},
                       item.tensor});
  };
  for (const NamedTensor& item : model.parameters())
    if (!item.tensor.defined() || item.tensor.requires_grad()) collect(item, TensorKind::parameter);
  for (const NamedTensor& item : model.buffers()) collect(item, TensorKind::buffer);
  refuse_shared_memory(tensors);
  return tensors;
}

std::vector<TensorSpec> specs_of(const std::vector<ModelTensor>& tensors) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const ModelTensor& item : tensors) specs.push_back(item.spec);
  return specs;
}

}  // namespace parley

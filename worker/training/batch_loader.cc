#include "worker/training/batch_loader.h"

#include <ATen/ops/empty.h>

#include <cstddef>

namespace parley {

BatchLoader::BatchLoader(const Dataset& data, at::Device device) : data_(data), device_(device) {}

BatchLoader::Tensors BatchLoader::load(std::span<const std::uint64_t> ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  const bool pinned = !device_.is_cpu();
  if (!inputs_.defined() || inputs_.size(0) < count) {
    const SampleShape shape = data_.shape();
    const auto floats = at::TensorOptions().dtype(at::kFloat).pinned_memory(pinned);
    const auto integers = at::TensorOptions().dtype(at::kLong).pinned_memory(pinned);
    inputs_ = at::empty({count, shape.channels, shape.height, shape.width}, floats);
    labels_ = at::empty({count}, integers);
  }
  const at::Tensor inputs = inputs_.narrow(0, 0, count);
  const at::Tensor labels = labels_.narrow(0, 0, count);
  data_.gather(ids, {inputs.mutable_data_ptr<float>(), ids.size() * data_.shape().elements()},
               {labels.mutable_data_ptr<std::int64_t>(), ids.size()});
  if (device_.is_cpu()) return {inputs, labels};
  return {inputs.to(device_, /*non_blocking=*/true), labels.to(device_, /*non_blocking=*/true)};
}

}  // namespace parley

// A model with its layout, arenas and binding on the CPU, put together as a worker does.
#pragma once

#include "common/layout/layout.h"
#include "worker/models/model.h"
#include "worker/training/host_arenas.h"
#include "worker/training/model_tensors.h"
#include "worker/training/module_binding.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace parley {

struct BoundModel {
  explicit BoundModel(Model& bound, std::uint64_t slice_bytes = 1 << 20, const std::vector<std::string>& no_decay = {})
      : model(bound),
        tensors(collect_tensors(bound, no_decay)),
        layout(specs_of(tensors), slice_bytes),
        arenas(layout, /*pinned=*/false),
        binding(bound, tensors, layout, arenas.parameters(), arenas.gradients(), at::kCPU) {}

  // The values of a tensor in a half of the parameter arena, and in the gradient arena.
  std::vector<float> weights(const std::string& name, Clock clock) const {
    return part(name, arenas.parameters().half(clock));
  }
  std::vector<float> gradient(const std::string& name) const { return part(name, arenas.gradients().values()); }
  std::span<float> place(const std::string& name, std::span<float> arena) const {
    const TensorPlace& where = layout.place(layout.find(name).value());
    return arena.subspan(where.offset, where.count);
  }

  Model& model;
  std::vector<ModelTensor> tensors;
  Layout layout;
  HostArenas arenas;
  ModuleBinding binding;

 private:
  std::vector<float> part(const std::string& name, std::span<float> arena) const {
    const std::span<float> values = place(name, arena);
    return {values.begin(), values.end()};
  }
};

}  // namespace parley

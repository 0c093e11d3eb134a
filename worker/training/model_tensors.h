// Which of a model's tensors are trained together, and whether they can be: the list that the layout is computed from.
//
// Rules
//  1. Parameters that require a gradient and all buffers take part, in order of registration, buffers after parameters.
//  2. A tensor that is registered under several names (tied weights) takes part once, under its first name.
//  3. A frozen parameter (requires_grad = false) takes no part: nobody changes it, so each process keeps its own.
//  4. What the arenas cannot hold faithfully is refused by name: elements that are not float32, sparse tensors, views
//     of overlapping memory. A strided tensor is taken; it becomes contiguous when it is bound.
#pragma once

#include "common/layout/layout.h"
#include "worker/models/model.h"

#include <string>
#include <vector>

namespace parley {

struct ModelTensor {
  TensorSpec spec;
  at::Tensor tensor;
};

// Group of the parameters whose name matches one of the `no_decay` patterns; the others are in group 0.
inline constexpr std::uint32_t kNoDecayGroup = 1;

// `no_decay`: shell patterns over parameter names, where * also matches a dot ("*.bias"). UsageError: rule 4.
std::vector<ModelTensor> collect_tensors(const Model& model, const std::vector<std::string>& no_decay);

// The specs alone, as Layout takes them.
std::vector<TensorSpec> specs_of(const std::vector<ModelTensor>& tensors);

}  // namespace parley

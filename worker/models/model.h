// A model as the trainer sees it: tensors with names, and a forward pass. What a network is made of (torch::nn, a file)
// is behind this interface, so that only the model's own file pays for including it.
//
// Belongs to the trainer's thread. The tensors are handles: whoever binds them (module_binding.h) changes what the
// model computes with.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace parley {

struct NamedTensor {
  std::string name;  // as registered: "conv1.weight"
  at::Tensor tensor;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // input: float32 [n, channels, height, width] on the device of the parameters. Returns float32 logits [n, classes].
  virtual at::Tensor forward(const at::Tensor& input) = 0;
  // Whether layers such as dropout behave as in training or as in evaluation; training at first.
  virtual void set_training(bool training) = 0;
  // In order of registration. A tensor that is registered twice (tied weights) appears under each of its names.
  virtual std::vector<NamedTensor> parameters() const = 0;
  // Tensors that forward changes and no gradient reaches (running statistics).
  virtual std::vector<NamedTensor> buffers() const = 0;
};

}  // namespace parley

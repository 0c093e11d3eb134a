// A Model made of given tensors and a function, for tests of what handles models.
#pragma once

#include "worker/models/model.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace parley {

class TensorModel final : public Model {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor& input, bool training)>;

  explicit TensorModel(std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers = {}, Forward forward = {})
      : parameters_(std::move(parameters)), buffers_(std::move(buffers)), forward_(std::move(forward)) {}

  at::Tensor forward(const at::Tensor& input) override { return forward_(input, training_); }
  void set_training(bool training) override { training_ = training; }
  std::vector<NamedTensor> parameters() const override { return parameters_; }
  std::vector<NamedTensor> buffers() const override { return buffers_; }

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  Forward forward_;
  bool training_ = true;
};

}  // namespace parley

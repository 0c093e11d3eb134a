// Makes a Model of a torch::nn::Module that has `at::Tensor forward(const at::Tensor&)`. Included by the files of the
// models only: torch/nn is slow to compile.
#pragma once

#include "worker/models/model.h"

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

namespace parley {

template <class Net>
class TorchModel final : public Model {
 public:
  template <class... Args>
  explicit TorchModel(Args&&... args) : net_(std::make_shared<Net>(std::forward<Args>(args)...)) {}

  at::Tensor forward(const at::Tensor& input) override { return net_->forward(input); }
  void set_training(bool training) override { net_->train(training); }
  std::vector<NamedTensor> parameters() const override { return named(net_->named_parameters()); }
  std::vector<NamedTensor> buffers() const override { return named(net_->named_buffers()); }

 private:
  template <class Dict>
  static std::vector<NamedTensor> named(const Dict& tensors) {
    std::vector<NamedTensor> list;
    for (const auto& item : tensors) list.push_back({item.key(), item.value()});
    return list;
  }

  std::shared_ptr<Net> net_;  // shared, because torch::nn registers modules by shared pointer
};

}  // namespace parley

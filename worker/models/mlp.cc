#include "worker/models/builtin.h"
#include "worker/models/torch_model.h"

#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <vector>

namespace parley {
namespace {

class Mlp : public torch::nn::Module {
 public:
  Mlp(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t classes) {
    std::int64_t width = inputs;
    for (const std::int64_t next : hidden) {
      add_layer(width, next);
      width = next;
    }
    add_layer(width, classes);
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = input.flatten(1);
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) x = at::relu(layers_[i]->forward(x));
    return layers_.back()->forward(x);
  }

 private:
  void add_layer(std::int64_t inputs, std::int64_t outputs) {
    layers_.push_back(register_module(fmt::format("fc{}", layers_.size() + 1), torch::nn::Linear(inputs, outputs)));
  }

  std::vector<torch::nn::Linear> layers_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const ModelOptions& options) {
  return std::make_unique<TorchModel<Mlp>>(static_cast<std::int64_t>(options.input.elements()), options.hidden,
                                           std::int64_t{options.classes});
}

}  // namespace parley

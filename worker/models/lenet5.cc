#include "common/base/error.h"
#include "worker/models/builtin.h"
#include "worker/models/torch_model.h"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace parley {
namespace {

constexpr SampleShape kInput{.channels = 1, .height = 28, .width = 28};

class Lenet5 : public torch::nn::Module {
 public:
  explicit Lenet5(std::int64_t classes)
      // Padding 2 makes of 28 x 28 what the original read as 32 x 32.
      : conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)))),
        fc1_(register_module("fc1", torch::nn::Linear(16 * 5 * 5, 120))),
        fc2_(register_module("fc2", torch::nn::Linear(120, 84))),
        fc3_(register_module("fc3", torch::nn::Linear(84, classes))) {}

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = at::max_pool2d(at::relu(conv1_->forward(input)), 2);
    x = at::max_pool2d(at::relu(conv2_->forward(x)), 2);
    x = at::relu(fc1_->forward(x.flatten(1)));
    x = at::relu(fc2_->forward(x));
    return fc3_->forward(x);
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
  torch::nn::Linear fc3_;
};

}  // namespace

std::unique_ptr<Model> make_lenet5(const ModelOptions& options) {
  if (options.input != kInput)
    throw UsageError(
        fmt::format("model.type = lenet5: found samples of {} x {} x {} (channels, height, width), "
                    "expected 1 x 28 x 28",
                    options.input.channels, options.input.height, options.input.width));
  return std::make_unique<TorchModel<Lenet5>>(std::int64_t{options.classes});
}

}  // namespace parley

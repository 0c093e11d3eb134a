#include "worker/training/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace parley {

Evaluator::Evaluator(Model& model, const Dataset& data, at::Device device, std::uint64_t batch_size)
    : model_(model), data_(data), loader_(data, device), batch_size_(batch_size) {}

Evaluation Evaluator::evaluate() {
  const at::NoGradGuard no_grad;
  model_.set_training(false);
  const std::uint64_t total = data_.size();
  std::vector<std::uint64_t> ids;
  std::int64_t correct = 0;
  double loss = 0;
  for (std::uint64_t begin = 0; begin < total; begin += batch_size_) {
    ids.resize(std::min(batch_size_, total - begin));
    std::iota(ids.begin(), ids.end(), begin);
    const auto [inputs, labels] = loader_.load(ids);
    const at::Tensor logits = model_.forward(inputs);
    loss += at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum).item<double>();
    correct += logits.argmax(1).eq(labels).sum().item<std::int64_t>();
  }
  model_.set_training(true);
  const auto count = static_cast<double>(total);
  return {static_cast<double>(correct) / count, loss / count};
}

}  // namespace parley

// Loss and accuracy of a model on a data set, with the weights that are selected.
//
// Belongs to the trainer's thread. Evaluation leaves training as it was: it draws no random number, records no graph,
// and puts the model back into training mode.
#pragma once

#include "worker/data/dataset.h"
#include "worker/models/model.h"
#include "worker/training/batch_loader.h"

#include <cstdint>

namespace parley {

struct Evaluation {
  double accuracy = 0;  // share of the samples whose largest logit is the label's
  double loss = 0;      // mean cross-entropy
};

class Evaluator {
 public:
  // Both references must outlive the evaluator. batch_size: samples a forward pass, at least 1.
  Evaluator(Model& model, const Dataset& data, at::Device device, std::uint64_t batch_size);

  // Over all samples, in their order.
  Evaluation evaluate();

 private:
  Model& model_;
  const Dataset& data_;
  BatchLoader loader_;
  std::uint64_t batch_size_;
};

}  // namespace parley

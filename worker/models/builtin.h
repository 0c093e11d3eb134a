// The factories behind registry.h, one a file.
#pragma once

#include "worker/models/model.h"
#include "worker/models/registry.h"

#include <memory>

namespace parley {

// A multi-layer perceptron: the sample flattened, options.hidden layers with ReLU, then the logits. Layers fc1, fc2,
// ...
std::unique_ptr<Model> make_mlp(const ModelOptions& options);
// LeNet-5 (LeCun et al., Proc. IEEE 1998) with ReLU and max pooling, for 28 x 28 grey images.
std::unique_ptr<Model> make_lenet5(const ModelOptions& options);

}  // namespace parley

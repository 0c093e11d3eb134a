// The built-in models by name (`model.type`).
#pragma once

#include "worker/data/dataset.h"
#include "worker/models/model.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parley {

struct ModelOptions {
  std::string type;                  // a name of model_names()
  SampleShape input;                 // of one sample
  std::uint32_t classes = 0;         // logits a sample
  std::vector<std::int64_t> hidden;  // mlp: widths of the hidden layers, in order; may be empty
  std::uint64_t seed = 0;            // the initial weights are a pure function of it and of the rest
};

std::vector<std::string_view> model_names();

// Builds a model on the CPU and draws its initial weights. Reseeds torch's generator. UsageError: an unknown name, or a
// model that does not take such samples.
std::unique_ptr<Model> make_model(const ModelOptions& options);

}  // namespace parley

// Whether a registering process fits the job: the same configuration, the same model, the same data. The first worker's
// model is the one the others are compared with.
#pragma once

#include "common/base/error.h"
#include "common/control/registration.h"
#include "common/layout/layout.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley {

// What a worker brings, to be the same for all.
struct Model {
  std::string from;  // "worker 0": who brought it first
  std::vector<TensorSpec> tensors;
  std::uint64_t slice_bytes = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t samples = 0;
};

// The first configuration key in which `theirs` differs, with both values, in one line; nothing where they agree.
std::optional<std::string> first_difference(const ConfigEntries& ours, const std::string& our_name,
                                            const ConfigEntries& theirs, const std::string& their_name);

// The model in a worker's Register; fails with one line where it has none or one that cannot be.
Result<Model> model_of(const wire::Register& registration, const std::string& name);

// What is different between two workers' models or data, in one line.
std::optional<std::string> first_difference(const Model& ours, const Model& theirs);

}  // namespace parley

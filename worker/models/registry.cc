#include "worker/models/registry.h"

#include "common/base/error.h"
#include "worker/models/builtin.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace parley {
namespace {

using Factory = std::unique_ptr<Model> (*)(const ModelOptions&);

constexpr std::array<std::pair<std::string_view, Factory>, 2> kModels{{
    {"mlp", make_mlp},
    {"lenet5", make_lenet5},
}};

}  // namespace

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, factory] : kModels) names.push_back(name);
  return names;
}

std::unique_ptr<Model> make_model(const ModelOptions& options) {
  for (const auto& [name, factory] : kModels) {
    if (name != options.type) continue;
    at::manual_seed(options.seed);
    return factory(options);
  }
  throw UsageError(
      fmt::format("model.type: found '{}', expected one of {}", options.type, fmt::join(model_names(), ", ")));
}

}  // namespace parley

#include "server/core/admission.h"

#include <fmt/format.h>

#include <map>

namespace parley {

std::optional<std::string> first_difference(const ConfigEntries& ours, const std::string& our_name,
                                            const ConfigEntries& theirs, const std::string& their_name) {
  const std::map<std::string, std::string> other(theirs.begin(), theirs.end());
  for (const auto& [key, value] : ours) {
    const auto found = other.find(key);
    if (found == other.end())
      return fmt::format("config key '{}': {} has {}, {} has no such key", key, our_name, value, their_name);
    if (found->second != value)
      return fmt::format("config key '{}': {} has {}, {} has {}", key, our_name, value, their_name, found->second);
  }
  const std::map<std::string, std::string> own(ours.begin(), ours.end());
  for (const auto& [key, value] : theirs)
    if (!own.contains(key))
      return fmt::format("config key '{}': {} has no such key, {} has {}", key, our_name, their_name, value);
  return std::nullopt;
}

Result<Model> model_of(const wire::Register& registration, const std::string& name) {
  if (registration.layout() == nullptr) return failure(fmt::format("{} brings no model", name));
  auto tensors = unpack_tensors(*registration.layout());
  if (!tensors) return failure(fmt::format("{}: {}", name, tensors.error().message));
  return Model{name, std::move(*tensors), registration.layout()->slice_bytes(), registration.layout()->fingerprint(),
               registration.samples()};
}

std::optional<std::string> first_difference(const Model& ours, const Model& theirs) {
  if (auto difference = first_difference(ours.tensors, ours.from, theirs.tensors, theirs.from)) return difference;
  if (ours.slice_bytes != theirs.slice_bytes)
    return fmt::format("slices: {} has {} bytes, {} has {}", ours.from, ours.slice_bytes, theirs.from,
                       theirs.slice_bytes);
  if (ours.samples != theirs.samples)
    return fmt::format("training set: {} has {} samples, {} has {}", ours.from, ours.samples, theirs.from,
                       theirs.samples);
  return std::nullopt;
}

}  // namespace parley

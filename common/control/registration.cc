#include "common/control/registration.h"

#include "common/wire/limits.h"

#include <fmt/format.h>

namespace parley {

std::unique_ptr<wire::ModelLayoutT> pack_layout(const std::vector<TensorSpec>& registered, std::uint64_t slice_bytes,
                                                std::uint64_t fingerprint) {
  auto packed = std::make_unique<wire::ModelLayoutT>();
  packed->slice_bytes = slice_bytes;
  packed->fingerprint = fingerprint;
  for (const TensorSpec& tensor : registered) {
    auto entry = std::make_unique<wire::TensorT>();
    entry->name = tensor.name;
    entry->shape = tensor.shape;
    entry->type = static_cast<std::uint8_t>(tensor.type);
    entry->kind = static_cast<std::uint8_t>(tensor.kind);
    entry->group = tensor.group;
    packed->tensors.push_back(std::move(entry));
  }
  return packed;
}

Result<std::vector<TensorSpec>> unpack_tensors(const wire::ModelLayout& packed) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t i = 0; packed.tensors() != nullptr && i < packed.tensors()->size(); ++i) {
    const wire::Tensor& entry = *packed.tensors()->Get(i);
    TensorSpec tensor;
    tensor.name = entry.name()->str();
    if (entry.shape() != nullptr) tensor.shape.assign(entry.shape()->begin(), entry.shape()->end());
    if (entry.type() != static_cast<std::uint8_t>(ElementType::float32))
      return failure(
          fmt::format("tensor '{}' has element type {}, this version knows float32", tensor.name, entry.type()));
    if (entry.kind() > static_cast<std::uint8_t>(TensorKind::buffer))
      return failure(fmt::format("tensor '{}' has kind {}", tensor.name, entry.kind()));
    tensor.kind = static_cast<TensorKind>(entry.kind());
    tensor.group = entry.group();
    tensors.push_back(std::move(tensor));
  }
  const std::uint64_t slice_bytes = packed.slice_bytes();
  if (slice_bytes == 0 || slice_bytes % kTensorAlignmentBytes != 0 || slice_bytes > limits::kSliceBytesMax)
    return failure(fmt::format("slices of {} bytes", slice_bytes));
  try {
    if (Layout(tensors, slice_bytes).fingerprint() != packed.fingerprint())
      return failure("the layout's fingerprint does not match its tensors: another version of this program");
  } catch (const UsageError& error) {
    return failure(error.what());
  }
  return tensors;
}

std::vector<std::unique_ptr<wire::StatT>> pack_stats(const Stats& stats) {
  std::vector<std::unique_ptr<wire::StatT>> packed;
  for (const auto& [name, value] : stats) {
    auto entry = std::make_unique<wire::StatT>();
    entry->name = name;
    entry->value = value;
    packed.push_back(std::move(entry));
  }
  return packed;
}

Stats unpack_stats(const flatbuffers::Vector<flatbuffers::Offset<wire::Stat>>* packed) {
  Stats stats;
  for (std::uint32_t i = 0; packed != nullptr && i < packed->size(); ++i)
    stats.emplace_back(packed->Get(i)->name()->str(), packed->Get(i)->value());
  return stats;
}

std::vector<std::unique_ptr<wire::EntryT>> pack_entries(const ConfigEntries& entries) {
  std::vector<std::unique_ptr<wire::EntryT>> packed;
  for (const auto& [key, value] : entries) {
    auto entry = std::make_unique<wire::EntryT>();
    entry->key = key;
    entry->value = value;
    packed.push_back(std::move(entry));
  }
  return packed;
}

ConfigEntries unpack_entries(const flatbuffers::Vector<flatbuffers::Offset<wire::Entry>>* packed) {
  ConfigEntries entries;
  for (std::uint32_t i = 0; packed != nullptr && i < packed->size(); ++i)
    entries.emplace_back(packed->Get(i)->key()->str(), packed->Get(i)->value()->str());
  return entries;
}

}  // namespace parley

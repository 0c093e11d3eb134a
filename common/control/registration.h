// What a process tells the coordinator about itself, and the summaries that travel back at the end: plain values on
// both sides of the wire's Register, ModelLayout and Stat.
#pragma once

#include "common/base/error.h"
#include "common/base/types.h"
#include "common/layout/layout.h"
#include "schemas/message_generated.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace parley {

using ConfigEntries = std::vector<std::pair<std::string, std::string>>;
// Named numbers of one process, in the order to be shown.
using Stats = std::vector<std::pair<std::string, double>>;

struct ProcessSummary {
  Role role = Role::worker;
  Rank rank;
  Stats stats;
};

// The tensors of a model as a message; `registered` in order of registration.
std::unique_ptr<wire::ModelLayoutT> pack_layout(const std::vector<TensorSpec>& registered, std::uint64_t slice_bytes,
                                                std::uint64_t fingerprint);
// The layout that a peer sent; fails where a field cannot be (unknown type or kind, a negative dimension, a slice size
// that is none, two equal names) or the fingerprint does not match the tensors.
Result<std::vector<TensorSpec>> unpack_tensors(const wire::ModelLayout& packed);

std::vector<std::unique_ptr<wire::StatT>> pack_stats(const Stats& stats);
Stats unpack_stats(const flatbuffers::Vector<flatbuffers::Offset<wire::Stat>>* packed);

std::vector<std::unique_ptr<wire::EntryT>> pack_entries(const ConfigEntries& entries);
ConfigEntries unpack_entries(const flatbuffers::Vector<flatbuffers::Offset<wire::Entry>>* packed);

}  // namespace parley

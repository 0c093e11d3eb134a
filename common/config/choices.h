// The config's choices: one enum a key, and the word that stands for each value in files, flags, logs and reports.
//
// Invariant: Words<E>::kList holds one word for each enumerator, in the order of the enumerators.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace parley {

// How a worker's step meets the other workers' steps; docs/design.md has the table.
enum class SyncMode { bsp, ssp, asp, allreduce, none };
enum class ModelType { mlp, lenet5 };
enum class DataKind { mnist };
// static: every rank's samples follow from (seed, epoch, clock, rank). dynamic: blocks of samples go to who asks first.
enum class DataSplit { static_split, dynamic_split };
enum class OptimizerName { sgd, adam, adamw, adagrad, rmsprop };
enum class Schedule { constant, step, cosine };

template <class E>
struct Words;
template <>
struct Words<SyncMode> {
  static constexpr std::array<std::string_view, 5> kList{"bsp", "ssp", "asp", "allreduce", "none"};
};
template <>
struct Words<ModelType> {
  static constexpr std::array<std::string_view, 2> kList{"mlp", "lenet5"};
};
template <>
struct Words<DataKind> {
  static constexpr std::array<std::string_view, 1> kList{"mnist"};
};
template <>
struct Words<DataSplit> {
  static constexpr std::array<std::string_view, 2> kList{"static", "dynamic"};
};
template <>
struct Words<OptimizerName> {
  static constexpr std::array<std::string_view, 5> kList{"sgd", "adam", "adamw", "adagrad", "rmsprop"};
};
template <>
struct Words<Schedule> {
  static constexpr std::array<std::string_view, 3> kList{"constant", "step", "cosine"};
};

// The word for a value of one of the enums above.
template <class E>
constexpr std::string_view word(E value) {
  return Words<E>::kList[static_cast<std::size_t>(value)];
}

}  // namespace parley

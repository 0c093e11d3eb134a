// The order in which an epoch visits the training set: one permutation of the sample ids, a pure function of (seed,
// epoch, number of samples). Every process computes it by itself, so nobody sends orders around, and the order is the
// same on every platform and for every number of workers.
//
// The object keeps the permutation of the epoch that was asked for last (8 bytes a sample); it belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley {

class EpochOrder {
 public:
  // `samples` is the size of the training set; at least 1 (the loaders refuse empty sets).
  EpochOrder(std::uint64_t seed, std::uint64_t samples);

  std::uint64_t samples() const { return samples_; }

  // Every sample id in [0, samples) exactly once. Valid until another epoch is asked for.
  std::span<const std::uint64_t> of(std::uint64_t epoch);

 private:
  std::uint64_t seed_;
  std::uint64_t samples_;
  std::optional<std::uint64_t> epoch_;  // whose permutation ids_ holds
  std::vector<std::uint64_t> ids_;
};

}  // namespace parley

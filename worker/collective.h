// Group operations between workers: what the all-reduce mode needs of Gloo (host memory) or NCCL (device memory).
//
// Every rank calls the same operations in the same order, from one thread. Blocking; a dead peer or a passed timeout
// is a RunError that names the operation, the rank and the time waited, after which the object is unusable.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

// How ranks find each other: a key-value store whose reads wait for the key. Implemented over the coordinator.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual void set(const std::string& key, std::span<const std::byte> value) = 0;
  // Waits until the key is set; throws RunError naming the key after `timeout`.
  virtual std::vector<std::byte> get(const std::string& key, Duration timeout) = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual Rank rank() const = 0;
  virtual std::uint32_t world_size() const = 0;
  // In-place sum over all ranks; the same count everywhere. With two ranks the result is the rank-order sum bit for
  // bit.
  virtual void all_reduce(std::span<float> values) = 0;
  // root's bytes to all.
  virtual void broadcast(std::span<std::byte> bytes, Rank root) = 0;
  virtual void barrier() = 0;
};

}  // namespace parley

// The collectives' rendezvous over the coordinator, and the blocks of samples that it hands out: what a worker asks of
// it besides membership. Thin adapters over ControlLoop, which must outlive them.
#pragma once

#include "common/transport/control_loop.h"
#include "worker/collective.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

class CoordinatorStore final : public RendezvousStore {
 public:
  explicit CoordinatorStore(ControlLoop& control) : control_(control) {}
  void set(const std::string& key, std::span<const std::byte> value) override { control_.store_set(key, value); }
  std::vector<std::byte> get(const std::string& key, Duration timeout) override {
    return control_.store_get(key, timeout);
  }

 private:
  ControlLoop& control_;
};

}  // namespace parley

// The rendezvous of the collectives: keys are set once or again, and a get waits for its key. Owned by the coordinator.
#pragma once

#include "common/base/types.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace parley {

class KeyValueStore {
 public:
  using Reader = std::pair<Role, Rank>;

  // Sets the key and returns who waits for it (and waits no more). False in `stored` where a limit is passed.
  struct SetResult {
    bool stored = true;
    std::set<Reader> waiting;
  };
  SetResult set(const std::string& key, std::vector<std::uint8_t> value);
  // The value, or null: then the reader is remembered.
  const std::vector<std::uint8_t>* get(const std::string& key, Reader reader);

 private:
  std::map<std::string, std::vector<std::uint8_t>> values_;
  std::map<std::string, std::set<Reader>> waiting_;
};

}  // namespace parley

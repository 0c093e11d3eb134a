// A RendezvousStore in memory that processes forked after its construction share with their parent.
#pragma once

#include "worker/collective/collective.h"

#include <array>
#include <cstddef>
#include <pthread.h>
#include <span>
#include <string>
#include <vector>

namespace parley::testing {

class SharedStore final : public RendezvousStore {
 public:
  SharedStore();
  ~SharedStore() override;
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  void set(const std::string& key, std::span<const std::byte> value) override;
  std::vector<std::byte> get(const std::string& key, Duration timeout) override;
  std::vector<std::string> keys() const;

 private:
  struct Entry {
    std::array<char, 64> key;
    std::array<std::byte, 2048> value;
    std::size_t size;
  };
  struct Table {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    std::size_t count;
    std::array<Entry, 64> entries;
  };
  const Entry* find(const std::string& key) const;

  Table* table_;
};

}  // namespace parley::testing

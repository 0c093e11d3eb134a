// A Collective without a network: the ranks are threads of one process, sums are made in rank order. A rank that calls
// another operation than the others, or with another size, is a failure of all; so is one that never comes.
#pragma once

#include "common/base/instant.h"
#include "worker/collective/collective.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace parley::testing {

class MemoryGroup {
 public:
  explicit MemoryGroup(std::uint32_t world_size, Duration timeout = std::chrono::seconds(20));
  ~MemoryGroup();

  Collective& at(std::uint32_t rank);
  // As if this rank's process had died: every operation of anybody fails from now on.
  void kill(std::uint32_t rank);

 private:
  class Member;
  struct Call {
    std::string operation;
    std::span<std::byte> bytes;
  };
  void call(std::uint32_t rank, const Call& call);
  void carry_out();

  const Duration timeout_;
  std::vector<std::unique_ptr<Member>> members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;  // of the operation that is gathering, a rank
  std::size_t arrived_ = 0;
  std::uint64_t operations_ = 0;  // carried out
  std::string broken_;
};

// Runs body(rank) on a thread a rank and joins them; the first exception in rank order is thrown on.
void run_ranks(std::uint32_t world_size, const std::function<void(std::uint32_t)>& body);

}  // namespace parley::testing

// The Collective over Gloo: host memory, TCP between all pairs of ranks, ring all-reduce.
//
// The constructor meets the other ranks in the store and returns when all of them are connected; a world of one rank
// uses neither store nor network. Owned and called by one thread at a time; Gloo runs one more, for its sockets.
//
// Invariants
//  1. Every wait ends within options.timeout. A peer that dies closes its sockets, so it is noticed at once; the
//     timeout is for one that is silent, and must be longer than a rank may lawfully keep the others waiting (an
//     evaluation).
//  2. After a failed operation all connections are closed, so that one rank's error ends the whole group.
//  3. SIGPIPE is ignored in this process from the first construction on: Gloo writes to sockets that a dead peer
//     closed.
//
// Gloo neither encrypts nor asks who connects; its listening sockets exist only while the ranks meet.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "worker/collective/collective.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gloo {
class Context;
}

namespace parley {

struct GlooOptions {
  Rank rank;
  std::uint32_t world_size = 1;
  // Where this rank listens: a name or an address of this machine that the others can reach.
  std::string host = "127.0.0.1";
  // In front of every key in the store: one group of one job and generation.
  std::string key_prefix;
  Duration timeout{};  // of each wait; positive
};

class GlooCollective final : public Collective {
 public:
  // Throws UsageError for a host that is not this machine's, RunError where not all ranks come in time. The store is
  // used here only.
  GlooCollective(const GlooOptions& options, RendezvousStore& store);
  ~GlooCollective() override;
  GlooCollective(const GlooCollective&) = delete;
  GlooCollective& operator=(const GlooCollective&) = delete;

  Rank rank() const override { return options_.rank; }
  std::uint32_t world_size() const override { return options_.world_size; }
  void all_reduce(std::span<float> values) override;
  void broadcast(std::span<std::byte> bytes, Rank root) override;
  void barrier() override;

 private:
  template <class Operation>
  void run(std::string_view name, std::size_t bytes, Operation&& operation);
  std::vector<std::uint32_t> lost_peers();

  const GlooOptions options_;
  std::shared_ptr<gloo::Context> context_;  // null in a world of one
  std::string failure_;                     // of the first failed operation
};

}  // namespace parley

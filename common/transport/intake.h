// Turns what came on a socket into verified messages. What is no message of ours is counted and dropped, and told once
// a connection, within a limit on lines: a port scan or a hostile peer fills neither the log nor the memory.
//
// Thread rule: one thread, the socket's.
#pragma once

#include "common/base/instant.h"
#include "common/transport/message_io.h"
#include "common/wire/message.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace parley {

class Intake {
 public:
  // `where` says in log lines which of our sockets it is ("shard 3").
  explicit Intake(std::string where) : where_(std::move(where)) {}

  // The message, or nothing where it is malformed.
  std::optional<Incoming> admit(Received received, Instant now);
  // For a message that parses but cannot be, as the state machine found.
  void reject(Route route, std::string_view peer, std::string_view why, Instant now);

  std::uint64_t malformed_count() const { return malformed_; }

 private:
  const std::string where_;
  std::uint64_t malformed_ = 0;
  // Warnings of the present window of time; a connection is named once in it.
  Instant window_end_ = Instant::min();
  std::unordered_set<Route> warned_;
};

}  // namespace parley

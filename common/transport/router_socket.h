// A listening socket: takes messages from many peers and answers each on the connection it names.
//
// Thread rule: one thread at a time (made on one, then used by another after a hand-over is fine). Invariants
//  1. Nothing is dropped in silence: there are no high-water marks, and a message for a connection that is gone is
//     reported as unreachable.
//  2. Nothing that a peer sends ends the process: oversized frames close that peer's connection, the rest is returned
//     for intake.h to judge.
#pragma once

#include "common/base/instant.h"
#include "common/transport/address.h"
#include "common/transport/context.h"
#include "common/transport/message_io.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace parley {

class RouterSocket {
 public:
  // `context` must outlive the socket. Throws RunError where the system has no room for another socket.
  explicit RouterSocket(Context& context);
  // Forgets what is unsent, unless close() came before.
  ~RouterSocket();
  RouterSocket(const RouterSocket&) = delete;
  RouterSocket& operator=(const RouterSocket&) = delete;

  // Listens on the first address of that name that this host has; port 0 takes a free one. Returns what was bound, in
  // numbers. Throws RunError with address, port and the system's reason. Once.
  Address bind(const Address& wanted);

  // The next message, without waiting.
  std::optional<Received> receive();
  SendResult send(Route to, Outgoing message);

  // Sends what is under way for at most `linger` more (in the background: the Context waits for it), then ends all
  // connections. No other function may be called after it.
  void close(Duration linger);

  void* handle() const { return socket_; }

 private:
  Route route_of(const std::string& routing_id);

  void* socket_;
  // Connections whose routing id is not one that ZeroMQ generated (a stranger's choice; none of our peers makes one).
  // Bounded: see kNamedRoutesMax.
  std::unordered_map<std::string, Route> named_routes_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::uint64_t next_named_;
};

}  // namespace parley

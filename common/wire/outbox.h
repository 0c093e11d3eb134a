// What one call into a state machine wants done: messages to be sent, in order. The caller owns the outbox, empties it
// after each call and may reuse it.
#pragma once

#include "common/base/types.h"
#include "common/wire/message.h"

#include <utility>
#include <vector>

namespace parley {

// A connection of a listening socket, as its owner names it (ZeroMQ: the ROUTER's routing id).
using Route = Strong<struct RouteTag, std::uint64_t>;

template <class To>
struct Addressed {
  To to;
  Outgoing message;
};

template <class To>
class Outbox {
 public:
  void send(To to, Outgoing message) { sends_.push_back({to, std::move(message)}); }
  std::vector<Addressed<To>>& sends() { return sends_; }
  bool empty() const { return sends_.empty(); }
  void clear() { sends_.clear(); }

 private:
  std::vector<Addressed<To>> sends_;
};

}  // namespace parley

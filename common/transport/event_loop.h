// Waits for any of a loop's sockets and mailboxes, or for a deadline. A loop is then a few lines: wait, read the clock,
// give each ready source its turn, tick, send what the machine wants sent.
//
// A turn is bounded (kMessagesPerTurn), so that a flood on one socket delays neither ticks nor the other sockets; what
// is left makes the next wait return at once.
//
// Thread rule: one thread. What is watched must outlive the poller.
#pragma once

#include "common/base/instant.h"
#include "common/transport/dealer_socket.h"
#include "common/transport/router_socket.h"
#include "common/transport/wakeup.h"

#include <zmq.h>

#include <cstddef>
#include <variant>
#include <vector>

namespace parley {

// Messages that a loop takes from one socket before it looks at the others and at the time.
inline constexpr int kMessagesPerTurn = 64;

class Poller {
 public:
  // Names a source in ready(): 0, 1, 2 ... in the order of the calls.
  using Token = std::size_t;
  Token watch(const RouterSocket& socket);
  Token watch(const DealerSocket& socket);
  Token watch(const Wakeup& wakeup);

  // Returns when a source is ready, a watched dealer has its own deadline, or `deadline` has come; signals do not end
  // it.
  void wait(Instant deadline);
  // Found by the last wait(): there may be something to take. A dealer is ready for its messages and its events alike.
  bool ready(Token source) const { return ready_[source]; }

 private:
  using Source = std::variant<const RouterSocket*, const DealerSocket*, const Wakeup*>;

  std::vector<Source> sources_;
  std::vector<char> ready_;
  // One entry a socket handle or file descriptor, made anew for each wait since dealers change theirs.
  std::vector<zmq_pollitem_t> items_;
  std::vector<Token> owners_;  // of items_
};

}  // namespace parley

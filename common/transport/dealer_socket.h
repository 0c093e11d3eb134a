// One connection to one peer, made again whenever it ends.
//
// Each connection has a ZeroMQ socket of its own: when it ends, the socket is closed and a new one is opened, so
// nothing that was queued for a lost peer survives and every frame lent for it is released. Hence the contract with the
// state machines: what was sent before a `connected` event may be lost; on that event everything unanswered is sent
// again. Where a name has several addresses, each attempt takes the next one.
//
// Thread rule: one thread at a time (made on one, then used by another after a hand-over is fine). Invariants
//  1. A message is taken only between a `connected` event that next_event() has returned and the end of that
//     connection.
//  2. Messages that came before the connection ended are received all the same, unless reopen() dropped them.
//  3. The peer gets no routing id from us: ZeroMQ loses a second connection of the same id in silence.
#pragma once

#include "common/base/instant.h"
#include "common/transport/address.h"
#include "common/transport/context.h"
#include "common/transport/message_io.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace parley {

enum class ConnectionEvent {
  connected,     // a new connection is there: repeat what is unanswered
  disconnected,  // it ended; another is being made
  failed         // an attempt to connect failed (why_unreachable() in address.h tells people why); another
                 // follows
};

class DealerSocket {
 public:
  // `context` must outlive the socket. Connecting begins with the first call of next_event(). Throws RunError where the
  // name does not resolve.
  DealerSocket(Context& context, const Address& peer) : DealerSocket(context, peer, resolve(peer)) {}
  // The same for a peer whose addresses (at least one) are known; they are tried in turn.
  DealerSocket(Context& context, const Address& peer, std::vector<NumericAddress> candidates);
  // Forgets what is unsent, unless close() came before.
  ~DealerSocket();
  DealerSocket(const DealerSocket&) = delete;
  DealerSocket& operator=(const DealerSocket&) = delete;

  // What happened to the connection, oldest first; nothing new: nullopt. Called until then whenever the loop wakes,
  // with the present time: it also makes the next attempt when that is due. Throws RunError where the system has no
  // room for another socket.
  std::optional<ConnectionEvent> next_event(Instant now);
  // When next_event() and receive() have to be called though nothing arrives.
  Instant next_deadline() const;

  // The next message, without waiting.
  std::optional<Received> receive();
  SendResult send(Outgoing message);

  // Ends this connection with all that was queued in either direction and makes a new one: for a peer that is known to
  // be lost or replaced though the connection looks alive. Returns no `disconnected` event.
  void reopen(Instant now);
  // Sends what is under way for at most `linger` more (in the background: the Context waits for it). No other function
  // may be called after it.
  void close(Duration linger);

  bool connected() const { return state_ == State::connected; }
  const Address& peer() const { return peer_; }
  // For Poller; null between two attempts.
  void* handle() const { return socket_; }
  void* monitor() const { return monitor_; }

 private:
  enum class State { waiting, connecting, connected };

  void open(Instant now);
  void shut();
  void retry_later(Instant now);
  std::optional<int> next_monitor_event();

  Context& context_;
  const Address peer_;
  const std::vector<NumericAddress> candidates_;

  State state_ = State::waiting;
  void* socket_ = nullptr;
  void* monitor_ = nullptr;
  std::size_t candidate_ = 0;        // index of the address to try next
  Duration pause_{};                 // before the next attempt
  Instant deadline_;                 // waiting: of the next attempt; connecting: of this one
  std::deque<Received> last_words_;  // received on the connection that ended
};

}  // namespace parley

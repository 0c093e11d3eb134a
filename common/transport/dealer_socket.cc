#include "common/transport/dealer_socket.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/socket_options.h"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

namespace parley {
namespace {

// Between two attempts: short, so that a cluster starts quickly whatever the order, and a few packets a second at most.
constexpr Duration kFirstPause = std::chrono::milliseconds(20);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);
// An address that swallows packets, or a listener that never completes the handshake.
constexpr Duration kAttempt = std::chrono::seconds(5);
// ZeroMQ's own reconnection comes too late to matter: this class makes the next connection itself.
constexpr int kNoReconnectMs = 3'600'000;

constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
                        ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

}  // namespace

DealerSocket::DealerSocket(Context& context, const Address& peer, std::vector<NumericAddress> candidates)
    : context_(context), peer_(peer), candidates_(std::move(candidates)), deadline_(Instant::min()) {
  PARLEY_CHECK(!candidates_.empty(), "no address of {}", peer_.text());
}

DealerSocket::~DealerSocket() { shut(); }

void DealerSocket::open(Instant now) {
  const NumericAddress& address = candidates_[candidate_];
  candidate_ = (candidate_ + 1) % candidates_.size();
  socket_ = context_.open(ZMQ_DEALER);
  set_common_options(socket_);
  set_option(socket_, ZMQ_RECONNECT_IVL, kNoReconnectMs);
  set_option(socket_, ZMQ_IPV6, address.family() == NumericAddress::Family::v6 ? 1 : 0);

  const std::string name = context_.unique_name();
  if (zmq_socket_monitor(socket_, name.c_str(), kEvents) != 0)
    throw RunError(fmt::format("cannot watch a connection to {}: {}", peer_.text(), zmq_strerror(errno)));
  monitor_ = context_.open(ZMQ_PAIR);
  set_option(monitor_, ZMQ_LINGER, 0);
  set_option(monitor_, ZMQ_RCVHWM, 0);
  PARLEY_CHECK(zmq_connect(monitor_, name.c_str()) == 0, "{}", zmq_strerror(errno));

  if (zmq_connect(socket_, address.address().endpoint().c_str()) != 0)
    throw RunError(fmt::format("cannot connect to {}: {}", peer_.text(), zmq_strerror(errno)));
  state_ = State::connecting;
  deadline_ = now + kAttempt;
}

// Stops the monitor first: ZeroMQ's I/O thread must never write to one that nobody reads.
void DealerSocket::shut() {
  if (socket_ != nullptr) zmq_socket_monitor(socket_, nullptr, 0);
  if (monitor_ != nullptr) close_socket(std::exchange(monitor_, nullptr), Duration::zero());
  if (socket_ != nullptr) close_socket(std::exchange(socket_, nullptr), Duration::zero());
  state_ = State::waiting;
}

void DealerSocket::retry_later(Instant now) {
  shut();
  deadline_ = now + pause_;
  pause_ = std::min(kLongestPause, pause_ * 2);
}

// The number of an event: the first part of a two-part message holds it in its first two bytes.
std::optional<int> DealerSocket::next_monitor_event() {
  bool more = false;
  std::optional<Frame> first = receive_frame(monitor_, more);
  if (!first) return std::nullopt;
  Received rest;
  receive_rest(monitor_, more, rest);
  std::uint16_t event = 0;
  PARLEY_CHECK(first->size() >= sizeof event, "event of {} bytes", first->size());
  std::memcpy(&event, first->bytes().data(), sizeof event);
  return event;
}

std::optional<ConnectionEvent> DealerSocket::next_event(Instant now) {
  if (state_ == State::waiting) {
    if (now < deadline_) return std::nullopt;
    if (pause_ == Duration::zero()) pause_ = kFirstPause;
    open(now);
  }
  const std::optional<int> event = next_monitor_event();
  if (!event && (state_ == State::connected || now < deadline_)) return std::nullopt;
  if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    state_ = State::connected;
    pause_ = kFirstPause;
    return ConnectionEvent::connected;
  }
  if (state_ == State::connecting) {
    retry_later(now);
    return ConnectionEvent::failed;
  }
  // The connection is over; what it brought is kept, since a peer's last words say why it left.
  bool more = false;
  while (std::optional<Frame> frame = receive_frame(socket_, more)) {
    Received& received = last_words_.emplace_back();
    received.frames.push_back(*std::move(frame));
    receive_rest(socket_, more, received);
  }
  retry_later(now);
  return ConnectionEvent::disconnected;
}

Instant DealerSocket::next_deadline() const {
  // Kept messages lie in no socket that a poller could see.
  if (!last_words_.empty()) return Instant::min();
  return state_ == State::connected ? kNever : deadline_;
}

std::optional<Received> DealerSocket::receive() {
  std::optional<Received> received;
  if (!last_words_.empty()) {
    received = std::move(last_words_.front());
    last_words_.pop_front();
    return received;
  }
  if (socket_ == nullptr) return received;
  bool more = false;
  std::optional<Frame> frame = receive_frame(socket_, more);
  if (!frame) return received;
  received.emplace().frames.push_back(*std::move(frame));
  receive_rest(socket_, more, *received);
  return received;
}

SendResult DealerSocket::send(Outgoing message) {
  if (state_ != State::connected) return SendResult::unreachable;
  return send_frames(socket_, std::move(message));
}

void DealerSocket::reopen(Instant now) {
  shut();
  last_words_.clear();
  deadline_ = now;
}

void DealerSocket::close(Duration linger) {
  if (state_ != State::connected) return shut();
  zmq_socket_monitor(socket_, nullptr, 0);
  close_socket(std::exchange(monitor_, nullptr), Duration::zero());
  close_socket(std::exchange(socket_, nullptr), linger);
  state_ = State::waiting;
}

}  // namespace parley

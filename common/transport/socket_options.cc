#include "common/transport/socket_options.h"

#include "common/base/log.h"
#include "common/wire/limits.h"

#include <zmq.h>

#include <cerrno>
#include <chrono>

namespace parley {
namespace {

constexpr int kHandshakeMs = 10'000;
// A peer whose machine is gone without a word is noticed after about two minutes, long after heartbeats have told.
constexpr int kKeepaliveIdleSeconds = 60;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 6;

}  // namespace

void set_option(void* socket, int option, int value) {
  PARLEY_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "option {}: {}", option, zmq_strerror(errno));
}

void set_option(void* socket, int option, std::int64_t value) {
  PARLEY_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "option {}: {}", option, zmq_strerror(errno));
}

void set_common_options(void* socket) {
  set_option(socket, ZMQ_SNDHWM, 0);
  set_option(socket, ZMQ_RCVHWM, 0);
  set_option(socket, ZMQ_LINGER, 0);
  set_option(socket, ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(limits::kFrameBytesMax));
  set_option(socket, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  set_option(socket, ZMQ_TCP_KEEPALIVE, 1);
  set_option(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleSeconds);
  set_option(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalSeconds);
  set_option(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveProbes);
}

void close_socket(void* socket, Duration linger) {
  set_option(socket, ZMQ_LINGER, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(linger).count()));
  PARLEY_CHECK(zmq_close(socket) == 0, "{}", zmq_strerror(errno));
}

}  // namespace parley

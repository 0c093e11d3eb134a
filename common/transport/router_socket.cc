#include "common/transport/router_socket.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/socket_options.h"

#include <fmt/format.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace parley {
namespace {

// ZeroMQ names a connection by a zero byte and a 32-bit number, which serves as the Route as it is.
constexpr std::size_t kGeneratedIdBytes = 5;
constexpr std::uint64_t kFirstNamedRoute = std::uint64_t{1} << 32;
// Names that are remembered; strangers that go on inventing them are forgotten in turn.
constexpr std::size_t kNamedRoutesMax = 1024;

using GeneratedId = std::array<char, kGeneratedIdBytes>;

GeneratedId generated_id(std::uint64_t number) {
  return {0, static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}

std::uint64_t number_of(const std::string& id) {
  std::uint64_t number = 0;
  for (std::size_t i = 1; i < kGeneratedIdBytes; ++i) number = number << 8 | static_cast<unsigned char>(id[i]);
  return number;
}

// The name of the connection in front of a message.
std::optional<std::string> receive_routing_id(void* socket) {
  bool more = false;
  const std::optional<Frame> frame = receive_frame(socket, more);
  if (!frame) return std::nullopt;
  PARLEY_CHECK(more, "ZeroMQ delivered a routing id alone");
  return std::string(reinterpret_cast<const char*>(frame->bytes().data()), frame->size());
}

Address bound_address(void* socket) {
  std::array<char, 256> text{};
  std::size_t size = text.size();
  PARLEY_CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text.data(), &size) == 0, "{}", zmq_strerror(errno));
  auto address = read_address(text.data());
  PARLEY_CHECK(address.has_value(), "ZeroMQ listens on {}", text.data());
  return *std::move(address);
}

}  // namespace

RouterSocket::RouterSocket(Context& context) : socket_(context.open(ZMQ_ROUTER)), next_named_(kFirstNamedRoute) {
  set_common_options(socket_);
  set_option(socket_, ZMQ_ROUTER_MANDATORY, 1);
  // A thousand workers may connect at once.
  set_option(socket_, ZMQ_BACKLOG, 4096);
}

RouterSocket::~RouterSocket() { close(Duration::zero()); }

Address RouterSocket::bind(const Address& wanted) {
  int error = 0;
  std::string tried;
  for (const NumericAddress& candidate : resolve(wanted)) {
    set_option(socket_, ZMQ_IPV6, candidate.family() == NumericAddress::Family::v6 ? 1 : 0);
    tried = candidate.address().endpoint();
    if (zmq_bind(socket_, tried.c_str()) == 0) return bound_address(socket_);
    error = errno;
    // A name may have an address of a kind or of an interface that this host lacks; anything else is the answer.
    if (error != EADDRNOTAVAIL && error != ENODEV && error != EAFNOSUPPORT) break;
  }
  // ZeroMQ's word for an address that is not of this host.
  if (error == ENODEV) error = EADDRNOTAVAIL;
  const std::string name = wanted.endpoint();
  throw RunError(fmt::format("cannot listen on {}{}: {}", name, tried == name ? "" : fmt::format(" ({})", tried),
                             zmq_strerror(error)));
}

Route RouterSocket::route_of(const std::string& routing_id) {
  if (routing_id.size() == kGeneratedIdBytes && routing_id[0] == 0) return Route(number_of(routing_id));
  if (const auto known = named_routes_.find(routing_id); known != named_routes_.end()) return known->second;
  if (named_routes_.size() == kNamedRoutesMax) {
    named_routes_.clear();
    names_.clear();
  }
  const Route route(next_named_++);
  named_routes_.emplace(routing_id, route);
  names_.emplace(route.value, routing_id);
  return route;
}

std::optional<Received> RouterSocket::receive() {
  const std::optional<std::string> routing_id = receive_routing_id(socket_);
  if (!routing_id) return std::nullopt;
  Received received;
  received.route = route_of(*routing_id);
  bool more = false;
  std::optional<Frame> first = receive_frame(socket_, more, &received.peer);
  PARLEY_CHECK(first.has_value(), "ZeroMQ delivered part of a message");
  received.frames.push_back(*std::move(first));
  receive_rest(socket_, more, received);
  return received;
}

SendResult RouterSocket::send(Route to, Outgoing message) {
  const GeneratedId generated = generated_id(to.value);
  std::span<const char> id = generated;
  if (to.value >= kFirstNamedRoute) {
    const auto name = names_.find(to.value);
    if (name == names_.end()) return SendResult::unreachable;
    id = name->second;
  }
  while (zmq_send(socket_, id.data(), id.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    if (errno == EINTR) continue;
    if (errno == EHOSTUNREACH) return SendResult::unreachable;
    throw RunError(fmt::format("cannot send: {}", zmq_strerror(errno)));
  }
  return send_frames(socket_, std::move(message));
}

void RouterSocket::close(Duration linger) {
  if (socket_ == nullptr) return;
  close_socket(std::exchange(socket_, nullptr), linger);
}

}  // namespace parley

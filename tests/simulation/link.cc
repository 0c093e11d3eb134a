#include "tests/simulation/link.h"

#include "common/base/log.h"

#include <algorithm>
#include <utility>

namespace parley::simulation {

Link::Link(EventQueue& events, RandomStream& random, std::uint64_t& next_route, Duration delay_max, Ends ends)
    : events_(events),
      random_(random),
      next_route_(next_route),
      delay_max_(delay_max),
      ends_(std::move(ends)),
      route_(++next_route) {}

Instant Link::next_arrival(Instant& last) {
  const auto delay = Duration(1 + random_.below(static_cast<std::uint64_t>(delay_max_.count())));
  last = std::max(last, events_.now() + delay);
  return last;
}

Incoming Link::received(Outgoing message) {
  std::vector<Frame> payload;
  for (Frame& frame : message.payload) payload.push_back(Frame::copy(frame.bytes()));
  auto parsed = Incoming::parse(Frame::copy(message.header.bytes()), std::move(payload));
  PARLEY_CHECK(parsed.has_value(), "a machine sent a message that does not parse: {}", parsed.error().message);
  return std::move(*parsed);
}

void Link::send_up(Outgoing message) {
  auto flight = std::make_shared<Flight>(Flight{std::move(message)});
  up_.push_back(flight);
  events_.at(next_arrival(last_up_), [this, flight, route = route_] {
    if (flight->lost) return;
    up_.remove(flight);
    Incoming incoming = received(std::exchange(flight->message, {}));
    ends_.listener(route, std::move(incoming));
  });
}

bool Link::send_down(Route to, Outgoing message) {
  if (to != route_) return false;
  auto flight = std::make_shared<Flight>(Flight{std::move(message)});
  down_.push_back(flight);
  events_.at(next_arrival(last_down_), [this, flight] {
    if (flight->lost) return;
    down_.remove(flight);
    ends_.dialer(received(std::exchange(flight->message, {})));
  });
  return true;
}

void Link::reset() {
  std::uint64_t arrive = random_.below(up_.size() + 1);
  Flights late;
  for (const auto& flight : up_) {
    if (arrive > 0) {
      --arrive;
      late.push_back(flight);
      continue;
    }
    flight->lost = true;
    flight->message = {};
  }
  for (const auto& flight : down_) {
    flight->lost = true;
    flight->message = {};
  }
  up_ = std::move(late);
  down_.clear();
  last_up_ = last_down_ = events_.now();
  route_ = Route(++next_route_);
  events_.after(Duration(1), ends_.reconnected);
}

}  // namespace parley::simulation

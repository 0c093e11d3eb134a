// A simulated connection from a dialing side (a worker's DEALER) to a listening one (a shard's ROUTER). In order within
// a connection, with a random delay of its own for every message, so messages of different connections overtake each
// other. Bytes are read when they arrive, not when they are sent: memory that was lent and rewritten too early shows.
//
// reset() breaks the connection: of what is under way upwards some first messages still arrive, late and from the old
// route; everything else is lost; the dialing side learns that it has a new connection.
#pragma once

#include "common/base/random.h"
#include "common/wire/message.h"
#include "common/wire/outbox.h"
#include "tests/simulation/event_queue.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

namespace parley::simulation {

class Link {
 public:
  struct Ends {
    std::function<void(Route, Incoming)> listener;
    std::function<void(Incoming)> dialer;
    std::function<void()> reconnected;
  };

  Link(EventQueue& events, RandomStream& random, std::uint64_t& next_route, Duration delay_max, Ends ends);

  Route route() const { return route_; }
  void send_up(Outgoing message);
  // False where `to` is not the living connection: the message is dropped, as ROUTER_MANDATORY tells.
  bool send_down(Route to, Outgoing message);
  void reset();

 private:
  struct Flight {
    Outgoing message;
    bool lost = false;
  };
  using Flights = std::list<std::shared_ptr<Flight>>;

  Instant next_arrival(Instant& last);
  static Incoming received(Outgoing message);

  EventQueue& events_;
  RandomStream& random_;
  std::uint64_t& next_route_;
  const Duration delay_max_;
  const Ends ends_;
  Route route_;
  Flights up_;
  Flights down_;
  Instant last_up_{};
  Instant last_down_{};
};

}  // namespace parley::simulation

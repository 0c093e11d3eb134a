// The coordinator's thread: joins one Coordinator to one listening socket, with a ZeroMQ context of its own. Bound
// before the thread starts, so that a port in use is known at once.
//
// Thread rule: made and destroyed by main; the thread owns socket and machine in between.
#pragma once

#include "common/transport/address.h"
#include "common/transport/context.h"
#include "common/transport/intake.h"
#include "common/transport/router_socket.h"
#include "common/transport/wakeup.h"
#include "server/core/coordinator.h"

#include <atomic>
#include <string>
#include <thread>

namespace parley {

class CoordinatorLoop {
 public:
  // Listens on `address` (port 0: a free one). Throws RunError with address, port and the system's reason.
  CoordinatorLoop(const CoordinatorOptions& options, const Address& address);
  // Where the job is over, late heartbeats are still answered for a moment, so that every process learns how it ended.
  ~CoordinatorLoop();
  CoordinatorLoop(const CoordinatorLoop&) = delete;
  CoordinatorLoop& operator=(const CoordinatorLoop&) = delete;

  // What was bound.
  const Address& address() const { return address_; }

 private:
  void run();
  void loop();
  void send(Coordinator::Out& out, Instant now);

  Context context_;
  RouterSocket socket_;
  const Address address_;
  Coordinator coordinator_;
  Intake intake_{"the coordinator"};
  std::atomic<bool> ending_{false};
  Wakeup wakeup_;
  std::thread thread_;
};

}  // namespace parley

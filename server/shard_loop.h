// A shard's thread: joins one Shard to one listening socket, and to the other shards where verdicts are exchanged.
// Nothing is shared with other shards, so nothing is locked.
//
// Thread rule: made, started and destroyed by main; the thread owns socket and machine in between. counters() from any
// thread.
#pragma once

#include "common/transport/context.h"
#include "common/transport/dealer_socket.h"
#include "common/transport/event_loop.h"
#include "common/transport/intake.h"
#include "common/transport/router_socket.h"
#include "common/transport/wakeup.h"
#include "server/core/shard.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley {

class ShardLoop {
 public:
  // `socket` is bound. `peers`: where every shard listens, by ShardId; used where verdicts are exchanged. on_fault: why
  // the job has to stop; called once, on the shard's thread.
  ShardLoop(Context& context, std::unique_ptr<RouterSocket> socket, std::unique_ptr<Shard> shard, ShardId id,
            const std::vector<std::string>& peers, bool verdicts, std::function<void(const std::string&)> on_fault);
  ~ShardLoop();
  ShardLoop(const ShardLoop&) = delete;
  ShardLoop& operator=(const ShardLoop&) = delete;

  // Of the last turn.
  ShardCounters counters() const;

 private:
  struct Peer {
    ShardId id;
    std::unique_ptr<DealerSocket> socket;
    Poller::Token token = 0;
  };

  void run();
  void loop();
  void take_messages(Instant now, ShardOutbox& out);
  void take_peers(Instant now, ShardOutbox& out);
  void send(ShardOutbox& out);

  std::unique_ptr<RouterSocket> socket_;
  std::unique_ptr<Shard> shard_;
  Intake intake_;
  std::vector<Peer> peers_;
  const std::function<void(const std::string&)> on_fault_;
  std::atomic<bool> ending_{false};
  Wakeup wakeup_;
  mutable std::mutex mutex_;
  ShardCounters counters_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace parley

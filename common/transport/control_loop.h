// The control thread of a process: joins its Member to one connection to the coordinator, with a ZeroMQ context of its
// own, so that neither heavy traffic nor a long evaluation looks like death. Everything else in the process talks to
// the coordinator through this object.
//
// Thread rule: every function from any thread. Every wait ends: with what it waits for, or with RunError(reason) when
// the job is over in failure; Member's own deadlines see to that.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/control/member.h"
#include "common/transport/address.h"
#include "common/transport/context.h"
#include "common/transport/dealer_socket.h"
#include "common/transport/wakeup.h"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace parley {

class ControlLoop {
 public:
  // Begins to connect at once. Throws RunError where the coordinator's name does not resolve.
  ControlLoop(const MemberOptions& options, const Address& coordinator);
  // What was said last still leaves.
  ~ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  std::pair<Rank, Incarnation> wait_welcome();
  // The membership once the group has got to this phase.
  MembershipView wait_phase(wire::Phase at_least);
  // How the job ended, in success or failure; does not throw.
  JobEnd wait_over();
  bool over() const;
  // Throws RunError(reason) where the job is over.
  void throw_if_over() const;
  // From this clock on the group stops; the end of clocks where none was named.
  Clock stop_clock() const;

  void finished(Clock clock);
  void request_stop(Clock clock);
  void done(const Stats& stats);
  void fail(wire::Fault fault, const std::string& text);
  // Asks for a block and returns; take_block() waits for it (nothing: the data is exhausted).
  void ask_block(const std::optional<BlockRange>& completed);
  std::optional<BlockRange> take_block();
  void store_set(const std::string& key, std::span<const std::byte> value);
  // Waits for the key; RunError naming it after `timeout`.
  std::vector<std::byte> store_get(const std::string& key, Duration timeout);

  // Called on the control thread, without a lock, whenever membership changed or the job is over; null: nobody. After
  // the call returns the former subscriber is called no more.
  void subscribe(std::function<void()> on_change);

 private:
  using Out = Member::Out;

  void run();
  void loop();
  void take_events(Instant now, Out& out);
  void take_messages(Instant now, Out& out);
  void send(Out& out);
  void notify();
  // Calls member_ under the lock and sends what it wants sent, from the caller's thread's point of view at once.
  template <class Call>
  void say(Call call);
  template <class Ready>
  void wait(Ready ready);

  Context context_;
  const MemberOptions options_;

  // Owned by the control thread.
  DealerSocket socket_;
  Instant next_reminder_;
  Instant next_probe_ = Instant::min();
  std::string why_;  // the coordinator could not be reached

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Member member_;        // guarded by mutex_
  Out said_;             // guarded by mutex_: to be sent by the control thread
  std::string broken_;   // guarded by mutex_: why this thread could not go on
  bool ending_ = false;  // guarded by mutex_

  std::mutex subscriber_mutex_;
  std::function<void()> subscriber_;  // guarded by subscriber_mutex_

  Wakeup wakeup_;
  std::thread thread_;
};

}  // namespace parley

// The comms thread: joins one ParameterClient to one connection a shard, so that pushes leave and weights arrive while
// the trainer computes. The trainer talks to it through a mailbox; it answers through the state below.
//
// Thread rule: every public function from the trainer's thread, but ready(), which autograd's threads may call too, and
// wake(), which any thread may.
//
// Every wait ends: with the awaited state, with the end of the job (ControlLoop), or with a fault: a shard that cannot
// be reached within the connect timeout, an answer that cannot be. Both of the latter are RunError.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/layout/layout.h"
#include "common/transport/context.h"
#include "common/transport/control_loop.h"
#include "common/transport/dealer_socket.h"
#include "common/transport/mailbox.h"
#include "worker/core/parameter_client.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace parley {

class CommsLoop {
 public:
  // Connects to the shards (addresses in order of ShardId) and starts the client. All references must outlive the loop.
  CommsLoop(ControlLoop& control, ParameterClient& client, const Layout& layout, std::span<const std::string> shards,
            Duration connect_timeout);
  // Gives up what is unanswered.
  ~CommsLoop();
  CommsLoop(const CommsLoop&) = delete;
  CommsLoop& operator=(const CommsLoop&) = delete;

  void begin(Clock clock, std::uint64_t samples);
  // present: a byte a part of the slice; copied before the call returns.
  void ready(SliceId slice, std::span<const std::uint8_t> present);
  void stop();
  void finish(Clock clock, bool group_stops);
  void pull_final();

  struct Progress {
    bool complete = false;  // the weights of `clock` are there, and the gradient arena may be written
    bool finished = false;  // every shard knows that this worker has finished
    Clock clock;
    std::uint64_t waited_us = 0;  // the longest that an answer of the last clock waited for other workers
    ClientCounters counters;
  };
  // Waits until `until(progress)`, or returns nothing once `interrupted()`, asked whenever something changed.
  template <class Until, class Interrupted>
  std::optional<Progress> wait(Until until, Interrupted interrupted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return fault_ || until(progress_) || interrupted(); });
    if (fault_) throw_fault();
    if (!until(progress_)) return std::nullopt;
    return progress_;
  }
  Progress progress() const;
  // Lets a waiting thread ask again.
  void wake();

 private:
  struct Command {
    enum class Kind { begin, ready, stop, finish, pull_final, end } kind;
    SliceId slice;
    Clock clock;
    std::uint64_t samples = 0;
    bool group_stops = false;
  };

  void post(Command command);
  void run();
  void loop();
  void take_commands(ParameterClient::Out& out);
  void take_socket(std::uint32_t shard, Instant now, ParameterClient::Out& out);
  void send(ParameterClient::Out& out);
  void publish(Instant now);
  void fail(std::string fault);
  [[noreturn]] void throw_fault() const;

  // Constant after construction.
  ControlLoop& control_;
  const Duration connect_timeout_;

  // Owned by the comms thread.
  ParameterClient& client_;
  Context context_;
  std::vector<std::unique_ptr<DealerSocket>> sockets_;  // by ShardId
  std::vector<std::optional<Instant>> unconnected_since_;
  std::vector<Command> commands_;
  std::vector<ParameterClient::Ready> ready_;
  Instant last_progress_;
  bool ended_ = false;

  // Written by ready() before its command is posted, read by the comms thread after; a slice is marked once a step.
  std::vector<std::vector<std::uint8_t>> present_;
  Mailbox<Command> mailbox_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;                 // guarded by mutex_
  std::optional<std::string> fault_;  // guarded by mutex_

  std::thread thread_;
};

}  // namespace parley

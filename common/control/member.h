// A process's side of its talk with the coordinator, as a state machine: it registers, sends heartbeats, hears who
// takes part and when to end, and repeats after a broken connection what has no answer yet. No socket, thread, lock or
// clock; one thread (common/transport/control_loop.h) or the simulator drives it.
//
// Invariants
//  1. Every wait has a limit: no Welcome within connect_timeout, or silence of heartbeat_timeout after it, ends the job
//     for this process with a reason that names the coordinator's address.
//  2. over() is set once and never changes.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/control/registration.h"
#include "common/wire/message.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace parley {

struct MemberOptions {
  JobId job;
  Role role = Role::worker;
  std::optional<Rank> rank;  // wanted; else one is handed out
  std::string coordinator;   // its address, for messages to people
  std::uint64_t start_count = 0;
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t life = 0;              // random
  std::vector<std::string> endpoints;  // servers: one a local shard
  std::vector<TensorSpec> tensors;     // workers: in order of registration
  std::uint64_t slice_bytes = 0;       // workers
  std::uint64_t samples = 0;           // workers: size of the training set
  ConfigEntries config;
  Duration heartbeat_interval = from_seconds(0.5);
  Duration heartbeat_timeout = from_seconds(5);
  Duration connect_timeout = from_seconds(30);
};

// The group as the coordinator last announced it.
struct MembershipView {
  std::uint64_t epoch = 0;
  wire::Phase phase = wire::Phase::gathering;
  std::map<Rank, Incarnation> workers;
  Clock stop_clock{~std::uint64_t{0}};
  std::vector<std::string> shards;  // by ShardId, once running
  std::vector<TensorSpec> tensors;  // servers, once running: in order of registration
  std::uint64_t slice_bytes = 0;
  std::uint64_t samples = 0;  // servers, once running: of the training set
};

// How the job ended.
struct JobEnd {
  bool ok = false;
  std::string reason;
  std::vector<ProcessSummary> processes;
};

// An answer to next_block().
struct BlockRange {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class Member {
 public:
  explicit Member(const MemberOptions& options) : options_(options) {}

  // Each call appends what is to be sent to `out`.
  using Out = std::vector<Outgoing>;
  void start(Instant now, Out& out);
  void receive(const Incoming& message, Instant now, Out& out);
  // The connection to the coordinator is new.
  void reconnected(Instant now, Out& out);
  void tick(Instant now, Out& out);
  Instant next_deadline() const;

  // This worker pushes nothing from `clock` on, and every shard knows.
  void finished(Clock clock, Out& out);
  void request_stop(Clock clock, Out& out);
  void done(Stats stats, Out& out);
  // This process cannot go on: the whole job ends with this reason.
  void fail(wire::Fault fault, const std::string& text, Out& out);
  // One request at a time; `completed` is the block whose samples were pushed.
  void next_block(const std::optional<BlockRange>& completed, Out& out);
  void store_set(const std::string& key, std::span<const std::byte> value, Out& out);
  void store_get(const std::string& key, Out& out);

  bool welcomed() const { return incarnation_.value != 0; }
  Rank rank() const { return rank_; }
  Incarnation incarnation() const { return incarnation_; }
  // Shows the newest membership; epoch 0: none yet.
  const MembershipView& membership() const { return membership_; }
  const std::optional<JobEnd>& over() const { return over_; }
  // The answer to next_block(), taken once: outer empty while there is none, inner empty when the data is exhausted.
  std::optional<std::optional<BlockRange>> take_block();
  std::optional<std::vector<std::byte>> take_value(const std::string& key);

 private:
  void welcome(const Incoming& message, Instant now, Out& out);
  void take_membership(const wire::Membership& body);
  void take_shutdown(const wire::Shutdown& body);
  void end(std::string reason);
  void send_register(Out& out);
  void send_block_request(Out& out);
  Header header(Clock clock = Clock());

  const MemberOptions options_;
  Rank rank_;
  Incarnation incarnation_;
  Sequence sequence_;
  bool started_ = false;
  Instant deadline_ = kNever;  // for Welcome, then for the coordinator's next sign of life
  Instant next_heartbeat_ = kNever;
  MembershipView membership_;
  std::optional<JobEnd> over_;
  // Said and to be said again on a new connection.
  std::optional<Clock> finished_;
  std::optional<Clock> stop_;
  std::optional<Stats> done_;
  struct BlockRequest {
    std::optional<BlockRange> completed;
    Sequence sequence;
  };
  std::optional<BlockRequest> block_request_;
  std::optional<std::optional<BlockRange>> block_;
  std::map<std::string, std::vector<std::byte>> sets_;
  std::set<std::string> gets_;
  std::map<std::string, std::vector<std::byte>> values_;
};

}  // namespace parley

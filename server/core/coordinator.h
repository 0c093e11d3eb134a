// The coordinator as a state machine: it lets processes in, waits until everybody is here, watches over their lives,
// announces who takes part and where the shards are, and ends the job. It lives in server 0 but stands on no data path.
// No socket, thread, lock, clock or file.
//
// Phases: gathering -> running -> all_finished -> closing -> over. A lost or failing process ends the job from any
// phase.
//
// Invariants
//  1. It keeps nothing that registrations cannot rebuild.
//  2. A rank with a living holder is never given to a second process; incarnations are never reused.
//  3. Every wait has a limit and says whom it waits for.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/data/block_dispenser.h"
#include "common/wire/message.h"
#include "common/wire/outbox.h"
#include "server/core/admission.h"
#include "server/core/key_value_store.h"
#include "server/core/roster.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace parley {

struct CoordinatorOptions {
  JobId job;
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
  ConfigEntries config;  // what everybody must agree on
  Duration start_timeout = from_seconds(60);
  Duration heartbeat_interval = from_seconds(0.5);
  Duration heartbeat_timeout = from_seconds(5);
  // How long a process whose connection closed may take to speak on a new one.
  Duration reconnect_grace = from_seconds(1);
  // How long the servers' last words are waited for, once every worker is done.
  Duration close_timeout = from_seconds(10);
  // data.split = dynamic; samples come with the workers' registration.
  std::optional<BlockDispenserOptions> blocks;
};

class Coordinator {
 public:
  using Out = Outbox<Route>;

  explicit Coordinator(const CoordinatorOptions& options);

  void start(Instant now) { started_ = now; }
  void receive(Route route, const Incoming& message, Instant now, Out& out);
  // A send to this route failed: its connection is gone.
  void unreachable(Route route, Instant now);
  void tick(Instant now, Out& out);
  Instant next_deadline() const;

  wire::Phase phase() const { return phase_; }
  // Set once the job has ended and everybody was told.
  struct End {
    bool ok = false;
    std::string reason;
  };
  const std::optional<End>& over() const { return over_; }
  std::size_t roster_size() const { return roster_.entries().size(); }
  // "worker 1": whom the current phase waits for.
  std::string waiting_for() const;

 private:
  void register_process(Route route, const Incoming& message, Instant now, Out& out);
  std::optional<std::string> refuse_rank(const wire::Register& body, Role role, std::optional<Rank> rank);
  std::optional<std::string> mismatch(const wire::Register& body, Role role, const std::string& name);
  void welcome(Route route, Roster::Key key, const RosterEntry& entry, Out& out);
  void advance(Instant now, Out& out);
  void next_block(Route route, Rank worker, const Incoming& message, Out& out);
  void store_set(const Incoming& message, Out& out);
  void send_value(const std::string& key, const std::vector<std::uint8_t>& value, Route to, Out& out);
  void check_lives(Instant now, Out& out);
  void forget_model_without_worker();
  bool all_done(Role role) const;
  void announce(Out& out);
  Outgoing membership(Role to);
  void end(bool ok, const std::string& reason, Out& out);
  Outgoing shutdown();
  Header header();

  const CoordinatorOptions options_;
  Instant started_;
  wire::Phase phase_ = wire::Phase::gathering;
  Instant closing_since_;
  Roster roster_;
  std::optional<Model> model_;
  std::string last_refusal_;
  std::set<Route> refused_routes_;  // logged
  std::uint64_t epoch_ = 0;
  Clock stop_clock_{~std::uint64_t{0}};
  Instant next_heartbeat_;
  Sequence sequence_;
  KeyValueStore store_;
  std::optional<BlockDispenser> blocks_;
  std::optional<End> over_;
};

}  // namespace parley

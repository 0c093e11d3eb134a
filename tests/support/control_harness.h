// Processes of a job as the coordinator and the member see them, played by tests: registrations, heartbeats and what
// comes back. One thread, no network.
#pragma once

#include "common/base/log.h"
#include "server/core/coordinator.h"
#include "tests/support/messages.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace parley::test {

inline constexpr JobId kControlJob{5};
inline const std::vector<TensorSpec> kControlModel{{"weight", {2, 3}}, {"bias", {3}}};

// One process that talks to the coordinator.
struct Process {
  Role role = Role::worker;
  std::optional<Rank> rank;  // wanted
  std::uint64_t life = 1;
  Route route;
  Rank given;
  Incarnation incarnation;
  std::uint64_t sequence = 0;

  Header header(Clock clock = Clock()) {
    return {kControlJob, Generation(1), role, given, incarnation, clock, Sequence(++sequence)};
  }
};

class CoordinatorHarness {
 public:
  explicit CoordinatorHarness(CoordinatorOptions options = {}) : coordinator(fill(std::move(options))) {
    log::set_threshold(log::Level::error);  // refusals are what these tests are about
    coordinator.start(now);
  }

  static Process server(std::uint32_t rank) {
    return {Role::server, Rank(rank), 100 + rank, Route(100 + rank), Rank(rank), {}, 0};
  }
  static Process worker(std::uint32_t rank) {
    return {Role::worker, Rank(rank), 200 + rank, Route(200 + rank), Rank(rank), {}, 0};
  }

  wire::RegisterT registration(const Process& process) const {
    wire::RegisterT body;
    body.has_rank = process.rank.has_value();
    body.host = "node" + std::to_string(process.route.value);
    body.pid = process.life;
    body.life = process.life;
    body.config = pack_entries({{"train.seed", "1"}});
    if (process.role == Role::server)
      body.endpoints = {"tcp://" + body.host + ":1", "tcp://" + body.host + ":2"};
    else
      body.layout = pack_layout(kControlModel, 64, Layout(kControlModel, 64).fingerprint());
    body.samples = process.role == Role::worker ? 60 : 0;
    return body;
  }
  // Sends `body` in the name of a process; what comes back stays in `out`.
  template <class Body>
  void send(Process& from, Body body, Clock clock = Clock()) {
    coordinator.receive(from.route, delivered(compose(from.header(clock), std::move(body))), now, out);
  }
  // Registers and takes rank and incarnation from the Welcome; false where there is none.
  bool enter(Process& process) { return enter(process, registration(process)); }
  bool enter(Process& process, wire::RegisterT body) {
    if (process.rank) process.given = *process.rank;
    send(process, std::move(body));
    for (const auto& sent : out.sends()) {
      if (sent.to != process.route || type_of(sent.message) != wire::Body::Welcome) continue;
      const auto welcome = body_of<wire::Welcome>(sent.message);
      process.given = Rank(welcome.rank);
      process.incarnation = Incarnation(welcome.incarnation);
      return true;
    }
    return false;
  }
  // The process has a new connection, on which it registers again.
  void move(Process& process, Route route) {
    const wire::RegisterT body = registration(process);
    process.route = route;
    send(process, body);
  }
  void tick() { coordinator.tick(now, out); }
  // Lets time pass in which all of these processes send heartbeats.
  void pass(Duration time, const std::vector<Process*>& alive) {
    for (const Instant end = now + time; now < end; now += std::chrono::milliseconds(500)) {
      for (Process* process : alive) send(*process, wire::HeartbeatT());
      tick();
      out.clear();
    }
  }

  // The bodies of one kind that were sent to a process since the outbox was last cleared.
  template <class Body>
  std::vector<typename Body::NativeTableType> sent(const Process& to) const {
    std::vector<typename Body::NativeTableType> found;
    auto& sends = const_cast<Coordinator::Out&>(out).sends();
    for (const auto& send : sends)
      if (send.to == to.route && type_of(send.message) == wire::BodyTraits<Body>::enum_value)
        found.push_back(body_of<Body>(send.message));
    return found;
  }
  template <class Body>
  typename Body::NativeTableType only(const Process& to) const {
    auto found = sent<Body>(to);
    if (found.size() != 1) throw std::runtime_error(std::to_string(found.size()) + " messages of this kind");
    return std::move(found[0]);
  }

  Instant now{std::chrono::seconds(1000)};
  Coordinator::Out out;
  Coordinator coordinator;

 private:
  static CoordinatorOptions fill(CoordinatorOptions options) {
    options.job = kControlJob;
    options.config = {{"train.seed", "1"}};
    return options;
  }
};

// A whole job of one server and two workers that runs.
struct RunningJob : CoordinatorHarness {
  explicit RunningJob(CoordinatorOptions options = {}) : CoordinatorHarness(with_workers(std::move(options))) {
    for (Process* process : everybody())
      if (!enter(*process)) throw std::runtime_error("not welcome");
    out.clear();
  }
  std::vector<Process*> everybody() { return {&server0, &worker0, &worker1}; }

  Process server0 = server(0);
  Process worker0 = worker(0);
  Process worker1 = worker(1);

 private:
  static CoordinatorOptions with_workers(CoordinatorOptions options) {
    options.workers = 2;
    return options;
  }
};

}  // namespace parley::test

#include "tests/simulation/sim_cluster.h"

#include "common/base/log.h"
#include "common/control/member.h"
#include "tests/simulation/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace parley::simulation {
namespace {

constexpr Duration kDelayMax = std::chrono::microseconds(800);
constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kTimeMax = std::chrono::seconds(600);

// One server: its shards, which read their links only once the layout is known.
struct SimServer {
  std::unique_ptr<Member> member;
  Link* control = nullptr;
  std::vector<std::unique_ptr<Shard>> shards;
  std::vector<std::pair<std::uint32_t, std::pair<Route, Incoming>>> held;  // by global shard
  bool done = false;
};

class SimCluster {
 public:
  explicit SimCluster(const Scenario& scenario)
      : scenario_(scenario),
        layout_(scenario.tensors, scenario.slice_bytes),
        placement_(layout_, scenario.shard_count()),
        ledger_(scenario.sync, scenario.workers, layout_.slice_count()),
        random_(scenario.seed, 2),
        coordinator_(coordinator_options(scenario)) {
    if (scenario.sync.gathers()) reference_ = std::make_unique<Reference>(scenario, layout_);
    make_servers();
    make_workers();
  }

  RunResult run();

 private:
  static CoordinatorOptions coordinator_options(const Scenario& scenario) {
    CoordinatorOptions options;
    options.job = kJob;
    options.servers = scenario.servers;
    options.workers = scenario.workers;
    return options;
  }

  void make_servers();
  void make_workers();
  std::unique_ptr<Link> link(Link::Ends ends) {
    return std::make_unique<Link>(events_, random_, next_route_, kDelayMax, std::move(ends));
  }
  Link* control_link(std::function<void(Incoming)> dialer, std::function<void()> reconnected);
  void coordinator_receives(Route route, const Incoming& message);
  void send_from_coordinator(Coordinator::Out& out);
  void server_receives(SimServer& server, std::uint32_t index, const Incoming& message);
  void shard_receives(ShardId id, Route route, Incoming message);
  void send_from_shard(ShardId id, ShardOutbox& out);
  void send_control(SimServer& server, Member::Out& out);
  void tick();
  void note(std::uint64_t value) { fingerprint_ = mix64(fingerprint_ ^ value); }
  bool over() const;
  void check_end(RunResult& result) const;

  const Scenario& scenario_;
  const Layout layout_;
  const Placement placement_;
  Ledger ledger_;
  EventQueue events_;
  RandomStream random_;
  std::uint64_t next_route_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::unique_ptr<Reference> reference_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<Link>> control_links_;
  std::vector<SimServer> servers_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::vector<std::vector<std::unique_ptr<Link>>> data_links_;  // a worker, a shard
};

Link* SimCluster::control_link(std::function<void(Incoming)> dialer, std::function<void()> reconnected) {
  control_links_.push_back(link({[this](Route route, Incoming message) { coordinator_receives(route, message); },
                                 std::move(dialer), std::move(reconnected)}));
  return control_links_.back().get();
}

void SimCluster::make_servers() {
  servers_.resize(scenario_.servers);
  for (std::uint32_t i = 0; i < scenario_.servers; ++i) {
    MemberOptions options;
    options.job = kJob;
    options.role = Role::server;
    options.rank = Rank(i);
    options.coordinator = "simulated";
    options.host = "simulated";
    options.life = 1 + i;
    for (std::uint32_t shard = 0; shard < scenario_.shards_per_server; ++shard)
      options.endpoints.push_back(fmt::format("simulated:{}", i * scenario_.shards_per_server + shard));
    SimServer& server = servers_[i];
    server.member = std::make_unique<Member>(options);
    server.control = control_link([this, i](Incoming message) { server_receives(servers_[i], i, message); },
                                  [this, i] {
                                    Member::Out out;
                                    servers_[i].member->reconnected(events_.now(), out);
                                    send_control(servers_[i], out);
                                  });
  }
}

void SimCluster::make_workers() {
  for (std::uint32_t rank = 0; rank < scenario_.workers; ++rank) {
    workers_.push_back(
        std::make_unique<SimWorker>(scenario_, layout_, placement_, reference_.get(), events_, random_, Rank(rank)));
    SimWorker* worker = workers_.back().get();
    Link* control = control_link([worker](Incoming message) { worker->receive_control(message); },
                                 [worker] { worker->control_reconnected(); });
    std::vector<Link*> shards;
    auto& links = data_links_.emplace_back();
    for (std::uint32_t shard = 0; shard < scenario_.shard_count(); ++shard) {
      const ShardId id(shard);
      links.push_back(
          link({[this, id](Route route, Incoming message) { shard_receives(id, route, std::move(message)); },
                [worker, id](Incoming message) { worker->receive(id, std::move(message)); },
                [worker, id] { worker->reconnected(id); }}));
      shards.push_back(links.back().get());
    }
    worker->connect(control, std::move(shards));
  }
}

void SimCluster::coordinator_receives(Route route, const Incoming& message) {
  Coordinator::Out out;
  coordinator_.receive(route, message, events_.now(), out);
  send_from_coordinator(out);
}

void SimCluster::send_from_coordinator(Coordinator::Out& out) {
  for (auto& send : out.sends()) {
    const auto found = std::ranges::find(control_links_, send.to, [](const auto& link) { return link->route(); });
    if (found == control_links_.end() || !(*found)->send_down(send.to, std::move(send.message)))
      coordinator_.unreachable(send.to, events_.now());
  }
}

void SimCluster::send_control(SimServer& server, Member::Out& out) {
  for (auto& message : out) server.control->send_up(std::move(message));
}

void SimCluster::server_receives(SimServer& server, std::uint32_t index, const Incoming& message) {
  Member::Out out;
  server.member->receive(message, events_.now(), out);
  if (server.member->over() && !server.member->over()->ok)
    throw Violation(fmt::format("server {}: {}", index, server.member->over()->reason));
  const MembershipView& group = server.member->membership();
  if (group.phase == wire::Phase::running && server.shards.empty()) {
    if (Layout(group.tensors, group.slice_bytes).fingerprint() != layout_.fingerprint())
      throw Violation("a server computes another layout than the workers");
    for (std::uint32_t local = 0; local < scenario_.shards_per_server; ++local) {
      ShardOptions options;
      options.id = ShardId(index * scenario_.shards_per_server + local);
      options.job = kJob;
      options.generation = Generation(1);
      options.server = Rank(index);
      options.incarnation = server.member->incarnation();
      options.workers = scenario_.workers;
      options.sync = scenario_.sync;
      options.clip_norm = scenario_.clip_norm;
      options.skip_non_finite = scenario_.skip_non_finite;
      server.shards.push_back(std::make_unique<Shard>(options, scenario_.store, layout_, placement_));
    }
    auto held = std::exchange(server.held, {});
    for (auto& [shard, what] : held) shard_receives(ShardId(shard), what.first, std::move(what.second));
  }
  if (group.phase == wire::Phase::closing && !server.done) {
    server.done = true;
    server.member->done({}, out);
  }
  send_control(server, out);
}

void SimCluster::shard_receives(ShardId id, Route route, Incoming message) {
  note(mix64(message.header().sequence.value) ^ (std::uint64_t{id.value} << 32) ^
       static_cast<std::uint64_t>(events_.now().time_since_epoch().count()));
  PARLEY_CHECK(scenario_.shards_per_server > 0, "a server has shards");
  SimServer& server = servers_[id.value / scenario_.shards_per_server];
  if (server.shards.empty()) {
    server.held.emplace_back(id.value, std::pair(route, std::move(message)));
    return;
  }
  if (message.header().role == Role::worker) ledger_.arrived(id, message);
  ShardOutbox out;
  server.shards[id.value % scenario_.shards_per_server]->receive(route, std::move(message), events_.now(), out);
  send_from_shard(id, out);
}

void SimCluster::send_from_shard(ShardId id, ShardOutbox& out) {
  if (out.fault) throw Violation(fmt::format("shard {}: {}", id, *out.fault));
  for (auto& send : out.replies.sends())
    for (std::uint32_t rank = 0; rank < scenario_.workers; ++rank) {
      Link& link = *data_links_[rank][id.value];
      if (link.route() != send.to) continue;
      ledger_.leaves(id, send.message, Rank(rank));
      link.send_down(send.to, std::move(send.message));
      break;
    }
  for (auto& send : out.verdicts.sends()) {
    std::vector<Frame> none;
    auto message =
        std::make_shared<Incoming>(*Incoming::parse(Frame::copy(send.message.header.bytes()), std::move(none)));
    events_.after(Duration(1 + random_.below(static_cast<std::uint64_t>(kDelayMax.count()))),
                  [this, to = send.to, message] { shard_receives(to, Route(0), std::move(*message)); });
  }
}

void SimCluster::tick() {
  Coordinator::Out out;
  coordinator_.tick(events_.now(), out);
  send_from_coordinator(out);
  for (SimServer& server : servers_) {
    Member::Out control;
    server.member->tick(events_.now(), control);
    send_control(server, control);
  }
  for (auto& worker : workers_) worker->tick();
  events_.after(kTick, [this] { tick(); });
}

bool SimCluster::over() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->over(); }) &&
         std::ranges::all_of(servers_, [](const auto& server) { return server.member->over().has_value(); });
}

RunResult SimCluster::run() {
  coordinator_.start(events_.now());
  for (auto& worker : workers_) events_.after(Duration(random_.below(5'000'000)), [w = worker.get()] { w->start(); });
  for (SimServer& server : servers_)
    events_.after(Duration(random_.below(5'000'000)), [this, s = &server] {
      Member::Out out;
      s->member->start(events_.now(), out);
      send_control(*s, out);
    });
  for (std::uint32_t i = 0; i < scenario_.resets; ++i)
    events_.after(Duration(random_.below(40'000'000)), [this] {
      if (random_.below(4) == 0) return control_links_[random_.below(control_links_.size())]->reset();
      data_links_[random_.below(scenario_.workers)][random_.below(scenario_.shard_count())]->reset();
    });
  tick();
  while (!over()) {
    if (!events_.step() || events_.now() > Instant(kTimeMax)) {
      std::string who;
      for (const auto& worker : workers_) who += worker->state() + "; ";
      throw Violation("no progress: " + who + "coordinator waits for " + coordinator_.waiting_for());
    }
  }
  RunResult result;
  check_end(result);
  return result;
}

void SimCluster::check_end(RunResult& result) const {
  if (coordinator_.roster_size() != scenario_.servers + scenario_.workers)
    throw Violation("the roster is short at the end");
  std::uint64_t clocks = 0;
  for (std::uint32_t rank = 0; rank < scenario_.workers; ++rank)
    clocks = std::max(clocks, scenario_.last_clock(Rank(rank)));
  for (const SimServer& server : servers_)
    for (const auto& shard : server.shards) {
      result.late += shard->counters().late;
      result.skipped += shard->counters().skipped;
      for (const SliceId slice : shard->slices()) {
        const std::uint64_t expected = scenario_.sync.gathers() ? clocks : ledger_.pushes(slice);
        if (shard->store().version(slice).value != expected)
          throw Violation(
              fmt::format("slice {} ends at version {}, expected {}", slice, shard->store().version(slice), expected));
      }
    }
  for (const auto& worker : workers_) {
    result.repeats += worker->client()->counters().repeats;
    result.ignored += worker->client()->counters().ignored;
    for (std::uint32_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
      auto values = worker->final_values(tensor);
      if (worker == workers_.front()) result.weights.push_back(values);
      const auto& expected = reference_ ? reference_->values(Clock(clocks), tensor) : result.weights[tensor];
      if (!values.empty() && std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)) != 0)
        throw Violation(fmt::format("final weights of '{}' at worker {} differ from the reference",
                                    layout_.tensor(tensor).name, worker->rank()));
    }
  }
  result.events = events_.steps();
  result.lead_max = ledger_.lead_max();
  result.answers_checked = ledger_.answers_checked();
  result.seconds = to_seconds(events_.now().time_since_epoch());
  result.fingerprint = fingerprint_;
}

}  // namespace

RunResult run(const Scenario& scenario) { return SimCluster(scenario).run(); }

}  // namespace parley::simulation

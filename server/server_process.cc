#include "server/server_process.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/layout/placement.h"
#include "common/process/job_options.h"
#include "common/process/program.h"
#include "common/process/termination.h"
#include "common/transport/address.h"
#include "common/transport/control_loop.h"
#include "common/transport/process_limits.h"
#include "server/coordinator_loop.h"
#include "server/shard_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace parley {
namespace {

// What it may take from the first signal until the coordinator has told everybody.
constexpr Duration kSignalGrace = std::chrono::milliseconds(1500);

CoordinatorOptions coordinator_options(const Config& config) {
  CoordinatorOptions options;
  options.job = job_id(config);
  options.servers = static_cast<std::uint32_t>(std::max<std::int64_t>(1, server_count(config)));
  options.workers = static_cast<std::uint32_t>(worker_count(config));
  options.config = job_entries(config);
  options.start_timeout = config.cluster.start_timeout;
  options.heartbeat_interval = config.cluster.heartbeat_interval;
  options.heartbeat_timeout = config.cluster.heartbeat_timeout;
  if (config.data.split == DataSplit::dynamic_split) options.blocks = block_options(config);
  return options;
}

SyncPolicy sync_policy(const Config& config) {
  switch (config.sync.mode) {
    case SyncMode::ssp:
      return {static_cast<std::uint64_t>(config.sync.staleness)};
    case SyncMode::asp:
      return {SyncPolicy::kUnbounded};
    default:
      return {0};
  }
}

bool wildcard(const Address& address) {
  return std::ranges::any_of(resolve(address), [](const NumericAddress& numeric) { return numeric.is_wildcard(); });
}

class ServerProcess {
 public:
  explicit ServerProcess(const CommandLine& line)
      : line_(line),
        config_(line.settings.config),
        bind_host_(parse_address(config_.cluster.bind + ":0", "cluster.bind").host) {
    require_safe_bind({bind_host_, 0}, line.insecure);
  }

  void check_limits() const;
  void start_coordinator();
  void bind_shards();
  void serve(Termination& termination);

 private:
  std::uint32_t shards() const { return uses_servers(config_) ? static_cast<std::uint32_t>(config_.server.shards) : 0; }
  bool coordinates() const { return line_.rank ? *line_.rank == Rank(0) : server_count(config_) <= 1; }
  void start_shards(ControlLoop& control, const MembershipView& group, Rank rank, Incarnation incarnation);
  Stats stats() const;

  const CommandLine& line_;
  const Config& config_;
  const std::string bind_host_;
  Address coordinator_address_;
  std::unique_ptr<CoordinatorLoop> coordinator_;
  Context context_;
  std::vector<std::unique_ptr<RouterSocket>> sockets_;
  std::vector<std::string> endpoints_;
  std::optional<Layout> layout_;
  std::optional<Placement> placement_;
  std::vector<std::unique_ptr<ShardLoop>> loops_;
};

void ServerProcess::check_limits() const {
  SocketPlan plan;
  plan.contexts = 2 + static_cast<std::uint64_t>(coordinates());
  plan.io_threads = static_cast<std::int64_t>(plan.contexts);
  plan.routers = shards() + static_cast<std::uint64_t>(coordinates());
  plan.dealers = 1;
  plan.mailboxes = shards() + 2;
  const auto workers = static_cast<std::uint64_t>(worker_count(config_));
  plan.accepted = workers * shards();
  if (coordinates()) plan.accepted += workers + static_cast<std::uint64_t>(server_count(config_));
  require_open_files(open_files_needed(plan), process_name(Role::server, line_.rank));
}

// Server 0 listens where the others look for it: on the host of cluster.coordinator, or everywhere where cluster.bind
// says so.
void ServerProcess::start_coordinator() {
  coordinator_address_ = parse_address(config_.cluster.coordinator, "cluster.coordinator");
  if (!coordinates()) {
    if (coordinator_address_.port == 0)
      throw UsageError("cluster.coordinator: found port 0, expected the port that server 0 listens on");
    return;
  }
  Address listen = coordinator_address_;
  if (wildcard({bind_host_, 0})) listen.host = bind_host_;
  require_safe_bind(listen, line_.insecure);
  coordinator_ = std::make_unique<CoordinatorLoop>(coordinator_options(config_), listen);
  coordinator_address_.port = coordinator_->address().port;
  log::info("the coordinator listens on {}", coordinator_->address().endpoint());
  if (line_.progress_fd) {
    const std::string text = fmt::format("{{\"coordinator\": \"{}\"}}\n", coordinator_address_.text());
    if (write(*line_.progress_fd, text.data(), text.size()) < 0)
      log::warning("--progress-fd {}: nobody reads it", *line_.progress_fd);
  }
}

void ServerProcess::bind_shards() {
  for (std::uint32_t shard = 0; shard < shards(); ++shard) {
    Address wanted{bind_host_, 0};
    if (config_.cluster.data_port != 0) wanted.port = static_cast<std::uint16_t>(config_.cluster.data_port + shard);
    sockets_.push_back(std::make_unique<RouterSocket>(context_));
    const Address bound = sockets_.back()->bind(wanted);
    endpoints_.push_back(advertised(bound, config_.cluster.advertise).endpoint());
  }
}

void ServerProcess::serve(Termination& termination) {
  MemberOptions options = member_options(line_, host_name(), random_life());
  options.coordinator = coordinator_address_.text();
  if (coordinates()) options.rank = Rank(0);
  options.endpoints = endpoints_;
  ControlLoop control(options, coordinator_address_);
  termination.on_signal([&](const char* name) { control.fail(wire::Fault::failed, fmt::format("ended by {}", name)); });
  const auto [rank, incarnation] = control.wait_welcome();
  log::rename(process_name(Role::server, rank));
  const MembershipView group = control.wait_phase(wire::Phase::running);
  if (shards() > 0) start_shards(control, group, rank, incarnation);
  control.wait_phase(wire::Phase::closing);
  control.done(stats());
  const JobEnd end = control.wait_over();
  termination.on_signal(nullptr);
  if (!end.ok) throw RunError(end.reason);
  log::info("done: {}", end.reason);
}

void ServerProcess::start_shards(ControlLoop& control, const MembershipView& group, Rank rank,
                                 Incarnation incarnation) {
  layout_.emplace(group.tensors, group.slice_bytes);
  placement_.emplace(*layout_, static_cast<std::uint32_t>(group.shards.size()));
  const StoreOptions store{optimizer_options(config_), group_options(config_),
                           schedule_options(config_, std::max<std::uint64_t>(1, group.samples))};
  for (std::uint32_t local = 0; local < shards(); ++local) {
    ShardOptions options;
    options.id = ShardId(rank.value * shards() + local);
    options.job = job_id(config_);
    options.generation = Generation(1);
    options.server = rank;
    options.incarnation = incarnation;
    options.workers = static_cast<std::uint32_t>(worker_count(config_));
    options.sync = sync_policy(config_);
    log::info("shard {} owns {} of {} slices, {} of {} bytes, on {}", options.id, placement_->slices(options.id).size(),
              layout_->slice_count(), placement_->bytes(options.id), layout_->arena_count() * sizeof(float),
              endpoints_[local]);
    loops_.push_back(std::make_unique<ShardLoop>(
        context_, std::move(sockets_[local]), std::make_unique<Shard>(options, store, *layout_, *placement_),
        options.id, group.shards, false,
        [&control](const std::string& fault) { control.fail(wire::Fault::non_finite, fault); }));
  }
  if (rank == Rank(0)) log::info("largest over smallest shard: {:.3f}", placement_->skew());
}

Stats ServerProcess::stats() const {
  ShardCounters sum;
  for (const auto& loop : loops_) {
    const ShardCounters counters = loop->counters();
    sum.pushes += counters.pushes;
    sum.repeats += counters.repeats;
    sum.late += counters.late;
    sum.malformed += counters.malformed;
    sum.updates += counters.updates;
    sum.bytes_received += counters.bytes_received;
    sum.bytes_sent += counters.bytes_sent;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {{"pushes", static_cast<double>(sum.pushes)},
          {"repeats", static_cast<double>(sum.repeats)},
          {"late", static_cast<double>(sum.late)},
          {"malformed", static_cast<double>(sum.malformed)},
          {"updates", static_cast<double>(sum.updates)},
          {"bytes_received", static_cast<double>(sum.bytes_received)},
          {"bytes_sent", static_cast<double>(sum.bytes_sent)},
          {"peak_rss_bytes", static_cast<double>(usage.ru_maxrss) * 1024}};
}

}  // namespace

int run_server(const CommandLine& line) {
  if (line.action == Action::print_placement)
    throw UsageError("--print-placement: ask parley-worker, which knows the model");
  Termination termination(kSignalGrace);
  raise_open_file_limit();
  keep_freed_memory();
  return termination.run([&] {
    ServerProcess process(line);
    process.check_limits();
    process.start_coordinator();
    process.bind_shards();
    process.serve(termination);
  });
}

}  // namespace parley

// What fake_worker is made of: worker/worker_process.cc without LibTorch.
#include "tests/support/fake_worker/fake_worker_process.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/layout/weights_digest.h"
#include "common/process/job_options.h"
#include "common/process/program.h"
#include "common/process/termination.h"
#include "common/transport/address.h"
#include "common/transport/control_loop.h"
#include "common/transport/process_limits.h"
#include "tests/support/fake_worker/fake_trainer.h"
#include "worker/collective/coordinator_store.h"
#include "worker/collective/gloo_collective.h"
#include "worker/sync/allreduce_strategy.h"
#include "worker/sync/local_strategy.h"
#include "worker/sync/server_strategy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace parley {
namespace {

constexpr Duration kSignalGrace = std::chrono::milliseconds(1500);
// Of each tensor in the report.
constexpr std::size_t kValuesShown = 8;

class FakeWorker {
 public:
  FakeWorker(const CommandLine& line, const FakePlan& plan)
      : line_(line),
        config_(line.settings.config),
        plan_(plan),
        layout_(plan.specs(), static_cast<std::uint64_t>(config_.server.slice_bytes)),
        schedule_(schedule_options(config_, static_cast<std::uint64_t>(plan.dataset))),
        half0_(layout_.arena_count()),
        half1_(layout_.arena_count()),
        gradient_values_(layout_.arena_count()),
        parameters_(layout_, half0_.values(), half1_.values()),
        gradients_(layout_, gradient_values_.values()) {}

  void run_alone();
  void run_in_group(Termination& termination);

 private:
  FakeResult train(Rank rank, Strategy& strategy);
  std::unique_ptr<Strategy> group_strategy(ControlLoop& control, Rank rank);
  std::unique_ptr<Collective> gloo(ControlLoop& control, Rank rank) const;
  void write_report(Rank rank, const FakeResult& result, const StrategyStats& stats) const;

  const CommandLine& line_;
  const Config& config_;
  const FakePlan& plan_;
  const Layout layout_;
  const ScheduleOptions schedule_;
  FloatBlock half0_;
  FloatBlock half1_;
  FloatBlock gradient_values_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  std::unique_ptr<Collective> collective_;
};

FakeResult FakeWorker::train(Rank rank, Strategy& strategy) {
  const bool slow = config_.debug.slow_rank == static_cast<std::int64_t>(rank.value);
  FakeTrainer trainer(plan_, layout_, parameters_, gradients_, rank, static_cast<std::uint64_t>(config_.train.seed),
                      slow ? config_.debug.slow_factor : 1);
  trainer.initialize();
  return trainer.run(strategy);
}

void FakeWorker::run_alone() {
  LocalStrategy strategy({optimizer_options(config_), group_options(config_), schedule_}, layout_, parameters_,
                         gradients_);
  const FakeResult result = train(Rank(0), strategy);
  write_report(Rank(0), result, strategy.stats());
}

std::unique_ptr<Collective> FakeWorker::gloo(ControlLoop& control, Rank rank) const {
  control.wait_phase(wire::Phase::running);
  CoordinatorStore store(control);
  const Address bound{parse_address(config_.cluster.bind + ":0", "cluster.bind").host, 0};
  GlooOptions options;
  options.rank = rank;
  options.world_size = static_cast<std::uint32_t>(worker_count(config_));
  options.host = advertised(resolve(bound).front().address(), config_.cluster.advertise).host;
  options.key_prefix = "gloo/1/";
  options.timeout = config_.cluster.collective_timeout;
  return std::make_unique<GlooCollective>(options, store);
}

std::unique_ptr<Strategy> FakeWorker::group_strategy(ControlLoop& control, Rank rank) {
  if (config_.sync.mode == SyncMode::allreduce) {
    collective_ = gloo(control, rank);
    return std::make_unique<AllreduceStrategy>(
        AllreduceStrategyOptions{optimizer_options(config_), group_options(config_), schedule_,
                                 [&control] { control.throw_if_over(); }},
        layout_, parameters_, gradients_, *collective_);
  }
  ServerStrategyOptions options;
  options.job = job_id(config_);
  options.gathers =
      config_.sync.mode == SyncMode::bsp || (config_.sync.mode == SyncMode::ssp && config_.sync.staleness == 0);
  options.connect_timeout = config_.cluster.connect_timeout;
  return std::make_unique<ServerStrategy>(options, control, layout_, parameters_, gradients_);
}

void FakeWorker::run_in_group(Termination& termination) {
  const Address coordinator = parse_address(config_.cluster.coordinator, "cluster.coordinator");
  MemberOptions options = member_options(line_, host_name(), random_life());
  options.tensors = plan_.specs();
  options.slice_bytes = layout_.slice_bytes();
  options.samples = static_cast<std::uint64_t>(plan_.dataset);
  ControlLoop control(options, coordinator);
  termination.on_signal([&](const char* name) { control.fail(wire::Fault::failed, fmt::format("ended by {}", name)); });
  const Rank rank = control.wait_welcome().first;
  log::rename(process_name(Role::worker, rank));
  JobEnd end;
  try {
    const auto strategy = group_strategy(control, rank);
    const FakeResult result = train(rank, *strategy);
    if (config_.sync.mode == SyncMode::allreduce) control.finished(result.end);
    write_report(rank, result, strategy->stats());
    control.done({{"samples", static_cast<double>(result.samples)}});
    end = control.wait_over();
  } catch (const std::exception& error) {
    if (!control.over()) control.fail(wire::Fault::failed, error.what());
    termination.on_signal(nullptr);
    throw;
  }
  termination.on_signal(nullptr);
  if (!end.ok) throw RunError(end.reason);
}

void FakeWorker::write_report(Rank rank, const FakeResult& result, const StrategyStats& stats) const {
  if (line_.output_dir.empty()) return;
  const auto weights = parameters_.half(result.final_half);
  nlohmann::json report = {{"rank", rank.value},
                           {"digest", weights_digest(layout_, weights)},
                           {"clock", result.end.value},
                           {"final_clock", result.final_half.value},
                           {"steps", result.steps},
                           {"samples", result.samples},
                           {"seconds", result.seconds},
                           {"stopped", result.stopped},
                           {"waiting_seconds", stats.waiting_seconds},
                           {"bytes_pushed", stats.bytes_pushed},
                           {"bytes_pulled", stats.bytes_pulled},
                           {"staleness_mean", stats.staleness_mean},
                           {"staleness_max", stats.staleness_max},
                           {"update_lag_max", stats.update_lag_max}};
  for (std::uint32_t index = 0; index < layout_.tensors().size(); ++index) {
    const TensorPlace& where = layout_.place(index);
    const auto values = weights.subspan(where.offset, std::min<std::size_t>(where.count, kValuesShown));
    report["values"][layout_.tensor(index).name] = std::vector<float>(values.begin(), values.end());
  }
  const auto path = std::filesystem::path(line_.output_dir) / fmt::format("worker-{}.json", rank);
  std::ofstream file(path);
  file << report.dump(1) << '\n';
  if (!file.flush()) throw RunError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace

int run_fake_worker(const CommandLine& line, const std::string& plan_path) {
  Termination termination(kSignalGrace);
  raise_open_file_limit();
  keep_freed_memory();
  if (!line.output_dir.empty()) std::filesystem::create_directories(line.output_dir);
  return termination.run([&] {
    const FakePlan plan = read_plan(plan_path);
    FakeWorker worker(line, plan);
    if (uses_network(line.settings.config)) {
      worker.run_in_group(termination);
    } else {
      worker.run_alone();
    }
  });
}

}  // namespace parley

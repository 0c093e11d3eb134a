#include "worker/worker_process.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/layout/layout.h"
#include "common/layout/weights_digest.h"
#include "common/observe/metrics_writer.h"
#include "common/observe/progress_writer.h"
#include "common/process/job_options.h"
#include "common/process/program.h"
#include "common/process/termination.h"
#include "common/transport/address.h"
#include "common/transport/control_loop.h"
#include "common/transport/process_limits.h"
#include "worker/data/batch_source.h"
#include "worker/data/mnist.h"
#include "worker/group_report.h"
#include "worker/models/registry.h"
#include "worker/placement_page.h"
#include "worker/strategy_factory.h"
#include "worker/sync/coordinator_blocks.h"
#include "worker/training/batch_loader.h"
#include "worker/training/device.h"
#include "worker/training/evaluator.h"
#include "worker/training/gradient_tracker.h"
#include "worker/training/host_arenas.h"
#include "worker/training/model_tensors.h"
#include "worker/training/module_binding.h"
#include "worker/training/trainer.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley {
namespace {

// What it may take from the first signal until the coordinator has told everybody.
constexpr Duration kSignalGrace = std::chrono::milliseconds(1500);

// Everything that exists before the group is joined: data, model, layout and the memory behind them.
struct Workbench {
  explicit Workbench(const CommandLine& line);

  const Config& config;
  const at::Device device;
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Model> model;
  std::vector<ModelTensor> tensors;
  Layout layout;
};

std::unique_ptr<Dataset> load(const Config& config, MnistPart part) { return load_mnist(config.data.dir, part); }

std::unique_ptr<Model> build_model(const Config& config, const Dataset& data) {
  ModelOptions options;
  options.type = word(config.model.type);
  options.input = data.shape();
  options.classes = data.classes();
  options.hidden = config.model.hidden;
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  return make_model(options);
}

Workbench::Workbench(const CommandLine& line)
    : config(line.settings.config),
      device(choose_device(config.worker.device)),
      train(load(config, MnistPart::train)),
      model(build_model(config, *train)),
      tensors(collect_tensors(*model, config.optimizer.no_decay)),
      layout(specs_of(tensors), static_cast<std::uint64_t>(config.server.slice_bytes)) {}

class WorkerProcess {
 public:
  WorkerProcess(const CommandLine& line, Workbench& bench)
      : line_(line),
        config_(line.settings.config),
        bench_(bench),
        arenas_(bench.layout, bench.device.is_cuda()),
        binding_(*bench.model, bench.tensors, bench.layout, arenas_.parameters(), arenas_.gradients(), bench.device),
        schedule_(schedule_options(config_, bench.train->size())) {
    if (!line.rank || *line.rank == Rank(0) || !uses_network(config_)) test_ = load(config_, MnistPart::test);
  }

  void run_alone();
  void run_in_group(Termination& termination);

 private:
  TrainerResult train(Rank rank, Strategy& strategy, BatchSource& batches);
  std::unique_ptr<BatchSource> batches(Rank rank, CoordinatorBlocks* blocks) const;
  std::string digest(const TrainerResult& result) const {
    return weights_digest(bench_.layout, arenas_.parameters().half(result.final_half));
  }
  void report(const TrainerResult& result, const JobEnd& end, const std::string& weights) const;

  const CommandLine& line_;
  const Config& config_;
  Workbench& bench_;
  HostArenas arenas_;
  ModuleBinding binding_;
  const ScheduleOptions schedule_;
  std::unique_ptr<Dataset> test_;
};

std::unique_ptr<BatchSource> WorkerProcess::batches(Rank rank, CoordinatorBlocks* blocks) const {
  const auto epochs = static_cast<std::uint64_t>(config_.train.epochs);
  if (blocks != nullptr)
    return std::make_unique<BlockBatches>(*blocks, static_cast<std::uint64_t>(config_.train.seed), bench_.train->size(),
                                          epochs);
  return std::make_unique<PlannedBatches>(batch_plan_options(config_, bench_.train->size()), epochs, rank);
}

TrainerResult WorkerProcess::train(Rank rank, Strategy& strategy, BatchSource& batches) {
  GradientTracker tracker(binding_, strategy);
  BatchLoader loader(*bench_.train, bench_.device);
  std::optional<Evaluator> evaluator;
  if (rank == Rank(0))
    evaluator.emplace(*bench_.model, *test_, bench_.device, static_cast<std::uint64_t>(config_.train.eval_batch));
  std::optional<MetricsWriter> metrics;
  if (!line_.output_dir.empty() && config_.metrics.every_steps > 0)
    metrics.emplace(std::filesystem::path(line_.output_dir) / "metrics.jsonl",
                    static_cast<std::uint64_t>(config_.metrics.every_steps));
  std::optional<ProgressWriter> progress;
  if (line_.progress_fd) progress.emplace(*line_.progress_fd);

  TrainerOptions options;
  options.rank = rank;
  options.seed = static_cast<std::uint64_t>(config_.train.seed);
  options.max_steps = static_cast<std::uint64_t>(config_.train.max_steps);
  options.max_seconds = config_.train.max_seconds;
  options.target_accuracy = config_.train.target_accuracy;
  if (config_.debug.slow_rank == static_cast<std::int64_t>(rank.value)) options.slow_factor = config_.debug.slow_factor;
  options.schedule = schedule_;
  const TrainerParts parts{*bench_.model,
                           binding_,
                           tracker,
                           strategy,
                           batches,
                           loader,
                           evaluator ? &*evaluator : nullptr,
                           metrics ? &*metrics : nullptr,
                           progress ? &*progress : nullptr};
  return Trainer(options, parts).run();
}

void WorkerProcess::run_alone() {
  log::rename(process_name(Role::worker, Rank(0)));
  const auto strategy =
      make_local_strategy(config_, schedule_, bench_.layout, arenas_.parameters(), arenas_.gradients());
  const auto source = batches(Rank(0), nullptr);
  const TrainerResult result = train(Rank(0), *strategy, *source);
  const std::string weights = digest(result);
  report(result, {true, "", {{Role::worker, Rank(0), worker_stats(result, weights)}}}, weights);
}

void WorkerProcess::run_in_group(Termination& termination) {
  const Address coordinator = parse_address(config_.cluster.coordinator, "cluster.coordinator");
  if (coordinator.port == 0)
    throw UsageError("cluster.coordinator: found port 0, expected the port that server 0 listens on");
  MemberOptions options = member_options(line_, host_name(), random_life());
  options.tensors = specs_of(bench_.tensors);
  options.slice_bytes = bench_.layout.slice_bytes();
  options.samples = bench_.train->size();
  ControlLoop control(options, coordinator);
  termination.on_signal([&](const char* name) { control.fail(wire::Fault::failed, fmt::format("ended by {}", name)); });
  const Rank rank = control.wait_welcome().first;
  log::rename(process_name(Role::worker, rank));
  JobEnd end;
  std::string weights;
  TrainerResult result;
  try {
    std::unique_ptr<Collective> collective;
    const auto strategy = make_group_strategy(config_, schedule_, bench_.layout, arenas_.parameters(),
                                              arenas_.gradients(), bench_.device, control, collective);
    std::optional<CoordinatorBlocks> blocks;
    if (config_.data.split == DataSplit::dynamic_split) blocks.emplace(control);
    const auto source = batches(rank, blocks ? &*blocks : nullptr);
    result = train(rank, *strategy, *source);
    if (config_.sync.mode == SyncMode::allreduce) control.finished(result.end);
    weights = digest(result);
    control.done(worker_stats(result, weights));
    end = control.wait_over();
  } catch (const std::exception& error) {
    // The others hear why, should they not be the reason themselves.
    if (!control.over()) control.fail(wire::Fault::failed, error.what());
    termination.on_signal(nullptr);
    throw;
  }
  termination.on_signal(nullptr);
  if (!end.ok) throw RunError(end.reason);
  if (rank == Rank(0)) report(result, end, weights);
}

void WorkerProcess::report(const TrainerResult& result, const JobEnd& end, const std::string& weights) const {
  check_same_weights(end);
  const RunReport report = group_report(config_, result, end, weights,
                                        provenance(library_versions(), fmt::format("{:016x}", fingerprint(config_))));
  if (!line_.output_dir.empty()) write_report(report, line_.output_dir);
  // The launcher shows the table itself.
  if (!line_.progress_fd) fmt::print("{}\n", to_table(report));
}

}  // namespace

int run_worker(const CommandLine& line) {
  Termination termination(kSignalGrace);
  raise_open_file_limit();
  keep_freed_memory();
  const Config& config = line.settings.config;
  configure_torch(static_cast<int>(config.worker.threads));
  if (!line.output_dir.empty() && line.action == Action::run) std::filesystem::create_directories(line.output_dir);
  return termination.run([&] {
    Workbench bench(line);
    if (line.action == Action::print_placement) {
      fmt::print("{}\n", placement_page(config, bench.layout));
      return;
    }
    WorkerProcess process(line, bench);
    if (uses_network(config)) {
      process.run_in_group(termination);
    } else {
      process.run_alone();
    }
  });
}

}  // namespace parley

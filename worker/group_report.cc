#include "worker/group_report.h"

#include "common/base/error.h"
#include "common/transport/context.h"
#include "worker/training/device.h"

#include <flatbuffers/base.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace parley {
namespace {

double stat(const ProcessSummary& process, const std::string& name) {
  for (const auto& [key, value] : process.stats)
    if (key == name) return value;
  return 0;
}

// 13 hexadecimal digits: as much as a double holds exactly.
double digest_part(const std::string& digest) {
  return static_cast<double>(std::stoull(digest.substr(0, 13), nullptr, 16));
}

}  // namespace

Stats worker_stats(const TrainerResult& result, const std::string& weights_digest) {
  const TimeShares shares = result.time_shares();
  return {{"samples", static_cast<double>(result.samples)},
          {"seconds", result.seconds},
          {"share_data", shares.data},
          {"share_compute", shares.compute},
          {"share_communication", shares.communication},
          {"share_waiting", shares.waiting},
          {"share_evaluation", shares.evaluation},
          {"bytes_pushed", static_cast<double>(result.strategy.bytes_pushed)},
          {"bytes_pulled", static_cast<double>(result.strategy.bytes_pulled)},
          {"staleness_mean", result.strategy.staleness_mean},
          {"staleness_max", static_cast<double>(result.strategy.staleness_max)},
          {"update_lag_mean", result.strategy.update_lag_mean},
          {"update_lag_max", static_cast<double>(result.strategy.update_lag_max)},
          {"digest_part", digest_part(weights_digest)}};
}

void check_same_weights(const JobEnd& end) {
  const ProcessSummary* first = nullptr;
  for (const ProcessSummary& process : end.processes) {
    if (process.role != Role::worker) continue;
    if (first == nullptr) first = &process;
    if (stat(process, "digest_part") != stat(*first, "digest_part"))
      throw RunError(fmt::format("workers {} and {} ended with different weights", first->rank, process.rank));
  }
}

RunReport group_report(const Config& config, const TrainerResult& own, const JobEnd& end,
                       const std::string& weights_digest, const Provenance& provenance) {
  RunReport report;
  report.mode = word(config.sync.mode);
  report.servers = static_cast<std::uint32_t>(server_count(config));
  report.workers = static_cast<std::uint32_t>(worker_count(config));
  report.steps = own.end.value;
  report.seconds = own.seconds;
  if (own.evaluation) {
    report.test_accuracy = own.evaluation->accuracy;
    report.test_loss = own.evaluation->loss;
  }
  report.weights_digest = weights_digest;
  report.provenance = provenance;
  double workers = 0;
  double samples = 0;
  for (const ProcessSummary& process : end.processes) {
    if (process.role != Role::worker) continue;
    workers += 1;
    samples += stat(process, "samples");
    report.bytes_pushed += static_cast<std::uint64_t>(stat(process, "bytes_pushed"));
    report.bytes_pulled += static_cast<std::uint64_t>(stat(process, "bytes_pulled"));
    report.staleness_mean += stat(process, "staleness_mean");
    report.staleness_max = std::max(report.staleness_max, static_cast<std::uint64_t>(stat(process, "staleness_max")));
    report.update_lag_mean += stat(process, "update_lag_mean");
    report.update_lag_max =
        std::max(report.update_lag_max, static_cast<std::uint64_t>(stat(process, "update_lag_max")));
    report.time_shares.data += stat(process, "share_data");
    report.time_shares.compute += stat(process, "share_compute");
    report.time_shares.communication += stat(process, "share_communication");
    report.time_shares.waiting += stat(process, "share_waiting");
    report.time_shares.evaluation += stat(process, "share_evaluation");
  }
  const double divisor = std::max(workers, 1.0);
  for (double* mean :
       {&report.staleness_mean, &report.update_lag_mean, &report.time_shares.data, &report.time_shares.compute,
        &report.time_shares.communication, &report.time_shares.waiting, &report.time_shares.evaluation})
    *mean /= divisor;
  report.samples_per_second = own.seconds > 0 ? samples / own.seconds : 0;
  return report;
}

std::map<std::string, std::string> library_versions() {
  return {{"libtorch", torch_version()},
          {"zeromq", zeromq_version()},
          {"flatbuffers", fmt::format("{}.{}.{}", FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR,
                                      FLATBUFFERS_VERSION_REVISION)}};
}

}  // namespace parley

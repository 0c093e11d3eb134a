#include "worker/strategy_factory.h"

#include "common/base/error.h"
#include "common/process/job_options.h"
#include "common/transport/address.h"
#include "worker/collective/coordinator_store.h"
#include "worker/collective/gloo_collective.h"
#include "worker/sync/allreduce_strategy.h"
#include "worker/sync/local_strategy.h"
#include "worker/sync/server_strategy.h"

#include <fmt/format.h>
#if defined(PARLEY_WITH_NCCL)
#include "worker/collective/nccl_collective.h"
#endif

namespace parley {
namespace {

// Where the other ranks reach this one.
std::string own_host(const Config& config) {
  const Address bound{parse_address(config.cluster.bind + ":0", "cluster.bind").host, 0};
  return advertised(resolve(bound).front().address(), config.cluster.advertise).host;
}

std::unique_ptr<Collective> make_collective(const Config& config, c10::Device device, ControlLoop& control) {
  const Rank rank = control.wait_welcome().first;
  control.wait_phase(wire::Phase::running);
  CoordinatorStore store(control);
  const auto world = static_cast<std::uint32_t>(worker_count(config));
  if (!device.is_cuda()) {
    GlooOptions options;
    options.rank = rank;
    options.world_size = world;
    options.host = own_host(config);
    options.key_prefix = "gloo/1/";
    options.timeout = config.cluster.collective_timeout;
    return std::make_unique<GlooCollective>(options, store);
  }
#if defined(PARLEY_WITH_NCCL)
  NcclOptions options;
  options.rank = rank;
  options.world_size = world;
  options.device = device.index();
  options.host = own_host(config);
  options.key_prefix = "nccl/1/";
  options.timeout = config.cluster.collective_timeout;
  return std::make_unique<NcclCollective>(options, store);
#else
  throw UsageError(fmt::format(
      "worker.device: found {}, expected cpu: this build has no NCCL, which sync.mode = allreduce needs on a GPU",
      device.str()));
#endif
}

}  // namespace

std::unique_ptr<Strategy> make_local_strategy(const Config& config, const ScheduleOptions& schedule,
                                              const Layout& layout, ParameterArena parameters,
                                              GradientArena gradients) {
  return std::make_unique<LocalStrategy>(
      LocalStrategyOptions{optimizer_options(config), group_options(config), schedule}, layout, parameters, gradients);
}

std::unique_ptr<Strategy> make_group_strategy(const Config& config, const ScheduleOptions& schedule,
                                              const Layout& layout, ParameterArena parameters, GradientArena gradients,
                                              c10::Device device, ControlLoop& control,
                                              std::unique_ptr<Collective>& collective) {
  if (config.sync.mode == SyncMode::allreduce) {
    collective = make_collective(config, device, control);
    return std::make_unique<AllreduceStrategy>(
        AllreduceStrategyOptions{optimizer_options(config), group_options(config), schedule,
                                 [&control] { control.throw_if_over(); }},
        layout, parameters, gradients, *collective);
  }
  ServerStrategyOptions options;
  options.job = job_id(config);
  options.gathers =
      config.sync.mode == SyncMode::bsp || (config.sync.mode == SyncMode::ssp && config.sync.staleness == 0);
  options.connect_timeout = config.cluster.connect_timeout;
  return std::make_unique<ServerStrategy>(options, control, layout, parameters, gradients);
}

}  // namespace parley

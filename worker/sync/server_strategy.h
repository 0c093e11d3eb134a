// bsp, ssp and asp: weights come from the servers. The trainer's side of CommsLoop and ControlLoop; torch-free.
#pragma once

#include "common/base/instant.h"
#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/layout/placement.h"
#include "common/transport/control_loop.h"
#include "worker/core/parameter_client.h"
#include "worker/sync/comms_loop.h"
#include "worker/sync/strategy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace parley {

struct ServerStrategyOptions {
  JobId job;
  bool gathers = true;  // bsp
  Duration connect_timeout = from_seconds(30);
};

class ServerStrategy : public Strategy {
 public:
  // The arenas' memory, the layout and the control loop must outlive the strategy.
  ServerStrategy(const ServerStrategyOptions& options, ControlLoop& control, const Layout& layout,
                 ParameterArena parameters, GradientArena gradients);
  ~ServerStrategy() override;

  Clock start() override;
  StepResult begin_step(Clock clock, std::uint64_t samples) override;
  void slice_ready(SliceId slice, std::span<const std::uint8_t> present) override;
  StepResult finish_step(Clock clock) override;
  void request_stop(Clock clock) override;
  Clock finish(Clock clock) override;
  StrategyStats stats() const override;

 private:
  bool group_stops(Clock clock) const { return control_.stop_clock() <= clock; }
  bool job_over() const { return control_.over(); }
  CommsLoop::Progress wait_complete();
  void account(Instant since, std::uint64_t waited_us);

  const ServerStrategyOptions options_;
  ControlLoop& control_;
  const Layout& layout_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  std::optional<Placement> placement_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<CommsLoop> comms_;
  std::optional<Clock> stop_requested_;
  double communication_seconds_ = 0;
  double waiting_seconds_ = 0;
};

}  // namespace parley

// From sync.mode to the object that renews the weights.
#pragma once

#include "common/config/config.h"
#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "common/optimizer/schedule.h"
#include "common/transport/control_loop.h"
#include "worker/collective/collective.h"
#include "worker/sync/strategy.h"

#include <c10/core/Device.h>

#include <memory>

namespace parley {

// sync.mode = none.
std::unique_ptr<Strategy> make_local_strategy(const Config& config, const ScheduleOptions& schedule,
                                              const Layout& layout, ParameterArena parameters, GradientArena gradients);

// Every other mode; waits until everybody is here. In all-reduce mode `collective` takes the group, Gloo on the CPU and
// NCCL on a GPU; it must outlive the strategy. Throws UsageError where the device has no group operations in this
// build.
std::unique_ptr<Strategy> make_group_strategy(const Config& config, const ScheduleOptions& schedule,
                                              const Layout& layout, ParameterArena parameters, GradientArena gradients,
                                              c10::Device device, ControlLoop& control,
                                              std::unique_ptr<Collective>& collective);

}  // namespace parley

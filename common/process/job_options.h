// From the one Config to the small option structs that each part takes: the only place where the two meet, shared by
// both programs so that servers and workers can not read a key differently. Pure functions.
#pragma once

#include "common/base/types.h"
#include "common/config/command_line.h"
#include "common/config/config.h"
#include "common/control/member.h"
#include "common/data/batch_plan.h"
#include "common/data/block_dispenser.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace parley {

JobId job_id(const Config& config);

OptimizerOptions optimizer_options(const Config& config);
// By parameter group: all tensors, then those that optimizer.no_decay names.
std::vector<GroupOptions> group_options(const Config& config);
// `samples`: of the training set; the schedule spans all epochs over them.
ScheduleOptions schedule_options(const Config& config, std::uint64_t samples);

// The data order of `workers` workers (static split), or what it would be (dynamic).
BatchPlanOptions batch_plan_options(const Config& config, std::uint64_t samples);
// data.split = dynamic: one batch a block; samples are filled in by the coordinator.
BlockDispenserOptions block_options(const Config& config);

// What this process registers with, but for endpoints and model. `life` is random.
MemberOptions member_options(const CommandLine& line, const std::string& host, std::uint64_t life);

}  // namespace parley

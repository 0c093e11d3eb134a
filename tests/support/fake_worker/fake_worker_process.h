// One fake worker from start to end: joins the job like parley-worker does, trains on the plan's gradients, and writes
// worker-RANK.json under --output-dir: digest, clocks, counters, and the first values of each tensor.
#pragma once

#include "common/config/command_line.h"

#include <string>

namespace parley {

// Returns the exit status; throws UsageError and RunError.
int run_fake_worker(const CommandLine& line, const std::string& plan_path);

}  // namespace parley

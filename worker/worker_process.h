// One worker from start to end: builds model and data, joins the group in the mode that the config names, trains, and
// hands in its summary; rank 0 reports for all.
#pragma once

#include "common/config/command_line.h"

namespace parley {

// Returns the exit status; throws UsageError and RunError.
int run_worker(const CommandLine& line);

}  // namespace parley

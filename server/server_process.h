// One server from start to end: binds its sockets, registers, serves its shards until every worker is done, and ends in
// order. Server 0 has the coordinator besides; in all-reduce mode it is nothing but that.
#pragma once

#include "common/config/command_line.h"

namespace parley {

// Returns the exit status; throws UsageError and RunError.
int run_server(const CommandLine& line);

}  // namespace parley

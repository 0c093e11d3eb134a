// What both programs' main() share: from argv to a running job and its exit status.
#pragma once

#include "common/base/types.h"
#include "common/config/command_line.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace parley {

// Reads the command line, prints the page that was asked for or calls `run`, and turns what was thrown into one line a
// fault and an exit status (2: usage and config, 1: the run failed).
int run_program(Role role, int argc, char** argv, const std::function<int(const CommandLine&)>& run);

// "server 1", or "server" while it has no rank: in front of log lines.
std::string process_name(Role role, const std::optional<Rank>& rank);
// This machine's name, for people.
std::string host_name();
// A number that no other process has: from the system's random source.
std::uint64_t random_life();

}  // namespace parley

// The command line that parley-server and parley-worker share: from argv to a checked Config, or to the page that was
// asked for. Used once, by main:
//
//   const CommandLine line = parse_command_line(Role::worker, arguments);   // throws UsageError:
//   exit status 2 if (line.action != Action::run) { write page(line) to standard output; return
//   kExitSuccess; } if (!line.settings.warning.empty()) log::warning("{}", line.settings.warning);
//   run(line.settings.config, ...);
#pragma once

#include "common/base/types.h"
#include "common/config/settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley {

enum class Action {
  run,
  print_help,
  print_version,
  print_config,           // TOML with provenance
  print_config_json,      // the same for programs
  print_config_markdown,  // docs/configuration.md
  check_config,
  print_placement,  // worker: which server would hold how much, as JSON; the worker's own page
};

struct CommandLine {
  Role role = Role::server;
  Action action = Action::run;
  std::string config_path;         // empty: no file, defaults and flags only
  Settings settings;               // of defaults alone for print_help, print_version and print_config_markdown
  std::optional<Rank> rank;        // empty: the coordinator hands one out
  std::string output_dir;          // empty: no report is written
  bool insecure = false;           // --insecure: may listen beyond this host without keys
  std::optional<int> progress_fd;  // the launcher's pipe, inherited
  std::uint64_t start_count = 0;   // how often the launcher has started this process before
};

// `arguments` is the command line without the program's name. Throws UsageError with a line for each fault of the file
// and of the flags. For a run it also checks the rank, and refuses to listen beyond this host without --insecure.
CommandLine parse_command_line(Role role, const std::vector<std::string>& arguments);

// What an action other than run and print_placement prints on standard output.
std::string page(const CommandLine& line);

}  // namespace parley

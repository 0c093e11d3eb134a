#include "common/process/program.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string>
#include <sys/random.h>
#include <unistd.h>
#include <vector>

namespace parley {
namespace {

int fail(int status, const std::string& lines) {
  std::size_t begin = 0;
  while (begin <= lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    if (end > begin) log::error("{}", lines.substr(begin, end - begin));
    begin = end + 1;
  }
  log::flush();
  return status;
}

}  // namespace

int run_program(Role role, int argc, char** argv, const std::function<int(const CommandLine&)>& run) {
  log::start(process_name(role, std::nullopt));
  try {
    const CommandLine line = parse_command_line(role, {argv + 1, argv + argc});
    if (line.action != Action::run && line.action != Action::print_placement) {
      fmt::print("{}", page(line));
      return kExitSuccess;
    }
    if (line.rank) log::rename(process_name(role, line.rank));
    if (!line.settings.warning.empty()) log::warning("{}", line.settings.warning);
    return run(line);
  } catch (const UsageError& error) {
    return fail(kExitUsage, error.what());
  } catch (const std::exception& error) {
    return fail(kExitRunError, error.what());
  }
}

std::string process_name(Role role, const std::optional<Rank>& rank) {
  return rank ? fmt::format("{} {}", role_name(role), rank->value) : role_name(role);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown host";
}

std::uint64_t random_life() {
  std::uint64_t life = 0;
  if (getrandom(&life, sizeof life, 0) != sizeof life) throw RunError("the system gives no random bytes");
  return life;
}

}  // namespace parley

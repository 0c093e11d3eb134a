#include "common/observe/provenance.h"

#include "common/observe/commit.h"

#include <fstream>
#include <string_view>
#include <utility>

namespace parley {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang++ " __clang_version__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown";
}

}  // namespace

Provenance provenance(std::map<std::string, std::string> libraries, std::string config_hash) {
  return {.version = PARLEY_VERSION,
          .commit = kCommit,
          .compiler = std::string(kCompiler),
          .cpu = cpu_name(),
          .libraries = std::move(libraries),
          .config_hash = std::move(config_hash)};
}

}  // namespace parley

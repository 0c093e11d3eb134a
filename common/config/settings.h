// From what a file and the flags give to one effective Config that knows where each of its values came from. Flags win
// over the file, the file over the defaults. A key without effect in the resulting config is an error as a flag and a
// warning in a file, so that one file serves several modes.
#pragma once

#include "common/config/config.h"
#include "common/config/keys.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace parley {

enum class Source { built_in, file, flag };

// One key as a file or a flag gives it. The value is of the key's type and within its bounds.
struct Given {
  const Key* key = nullptr;
  Value value;
  Source source = Source::file;
  std::string where;  // "configs/mnist.toml:12", "--sync.mode"
};

// What became of one key.
struct Setting {
  Value value;  // what was given, or the default
  Source source = Source::built_in;
  std::string where;   // as in Given; "default" where nothing gave it
  bool active = true;  // false: the key has no effect in this config, which holds its default instead
};

struct Settings {
  Config config;
  std::vector<Setting> entries;  // one a key, in the order of keys()
  std::string warning;           // one line that names every key of the file without effect; empty: none
};

// Combines, finds what has no effect, and checks the rules that join several keys. Each key stands at most once in each
// list. Throws UsageError with a line for each fault.
Settings combine(const std::vector<Given>& from_file, const std::vector<Given>& from_flags);

// The keys that all processes of a job must agree about and that have an effect, as (name, canonical text), in the
// order of keys(): what registration compares.
std::vector<std::pair<std::string, std::string>> job_entries(const Config& config);

// xxhash64 of job_entries: equal exactly where the jobs' configs agree.
std::uint64_t fingerprint(const Config& config);

// Collects faults and throws them as one UsageError, a line each; of very many only the first are shown.
class Faults {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  bool empty() const { return lines_.empty(); }
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace parley

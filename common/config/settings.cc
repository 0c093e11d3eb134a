#include "common/config/settings.h"

#include "common/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>

namespace parley {
namespace {

constexpr std::size_t kMaxFaultsShown = 20;
constexpr std::int64_t kMaxGlobalBatch = 1 << 24;

// "sync.mode = bsp (configs/mnist.toml:40)"
std::string account(const Settings& settings, const Key& key) {
  const Setting& setting = settings.entries[index_of(key)];
  return fmt::format("{} = {} ({})", key.name, to_toml(key.get(settings.config)), setting.where);
}

std::string account(const Settings& settings, std::string_view name) { return account(settings, *find_key(name)); }

void take(Config& config, Settings& settings, const std::vector<Given>& given) {
  for (const Given& one : given) {
    one.key->set(config, one.value);
    settings.entries[index_of(*one.key)] = Setting{one.value, one.source, one.where, true};
  }
}

// Whether a key has an effect is decided on the config as it was given, all keys at once, so that it does not depend on
// the order of the list.
void settle_inactive(const Config& as_given, Settings& settings, Faults& faults) {
  const Config defaults;
  std::vector<std::pair<std::string, std::vector<std::string>>> ignored;  // condition, keys
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    Setting& setting = settings.entries[i];
    setting.active = key.active(as_given);
    if (setting.active) continue;
    key.set(settings.config, key.get(defaults));
    if (setting.source == Source::flag) {
      std::vector<std::string> reasons;
      for (const std::string& name : key.condition.decided_by) {
        const Key& decider = *find_key(name);
        reasons.push_back(fmt::format("{} = {} ({})", name, to_toml(decider.get(as_given)),
                                      settings.entries[index_of(decider)].where));
      }
      faults.add(fmt::format("{}: has no effect here: it counts only {}, and {}", setting.where, key.condition.when,
                             fmt::join(reasons, ", ")));
    } else if (setting.source == Source::file) {
      const std::string when = key.condition.when;
      if (ignored.empty() || ignored.back().first != when) ignored.push_back({when, {}});
      ignored.back().second.push_back(fmt::format("{} ({})", key.name, setting.where));
    }
  }
  for (const auto& [when, names] : ignored) {
    settings.warning += fmt::format("{}{}: counts only {}", settings.warning.empty() ? "without effect here: " : "; ",
                                    fmt::join(names, ", "), when);
  }
}

// The rules that join several keys.
void cross_check(const Settings& settings, Faults& faults) {
  const Config& c = settings.config;
  const auto told = [&](std::string_view name) { return account(settings, name); };
  if (c.debug.slow_rank >= c.cluster.workers) {
    faults.add(fmt::format("{}: no such rank with {}", told("debug.slow_rank"), told("cluster.workers")));
  }
  if (c.cluster.heartbeat_timeout <= 2 * c.cluster.heartbeat_interval) {
    faults.add(fmt::format("{}: expected more than twice {}, or one late heartbeat counts as a death",
                           told("cluster.heartbeat_timeout"), told("cluster.heartbeat_interval")));
  }
  if (c.cluster.data_port > 0 && c.cluster.data_port + c.server.shards - 1 > 65535) {
    faults.add(fmt::format("{}: the last of {} would have a port above 65535", told("cluster.data_port"),
                           told("server.shards")));
  }
  if (global_batch(c) > kMaxGlobalBatch) {
    faults.add(fmt::format("{}: with {} a step takes {} samples, expected at most {}", told("train.batch_size"),
                           told("cluster.workers"), global_batch(c), kMaxGlobalBatch));
  }
  if (c.optimizer.nesterov && c.optimizer.momentum == 0) {
    faults.add(
        fmt::format("{}: needs a momentum above 0, found {}", told("optimizer.nesterov"), told("optimizer.momentum")));
  }
  if (c.optimizer.final_learning_rate > c.optimizer.learning_rate) {
    faults.add(
        fmt::format("{}: expected at most {}", told("optimizer.final_learning_rate"), told("optimizer.learning_rate")));
  }
}

}  // namespace

Settings combine(const std::vector<Given>& from_file, const std::vector<Given>& from_flags) {
  Settings settings;
  const Config defaults;
  for (const Key& key : keys()) {
    settings.entries.push_back(Setting{key.get(defaults), Source::built_in, "default", true});
  }
  Config as_given;
  take(as_given, settings, from_file);
  take(as_given, settings, from_flags);
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (key.derive_default && settings.entries[i].source == Source::built_in) {
      key.derive_default(as_given);
      settings.entries[i].value = key.get(as_given);
    }
  }
  settings.config = as_given;
  Faults faults;
  settle_inactive(as_given, settings, faults);
  faults.throw_if_any();
  cross_check(settings, faults);
  faults.throw_if_any();
  return settings;
}

std::vector<std::pair<std::string, std::string>> job_entries(const Config& config) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Key& key : keys()) {
    if (key.scope == Scope::job && key.active(config)) {
      entries.emplace_back(key.name, to_toml(key.get(config)));
    }
  }
  return entries;
}

std::uint64_t fingerprint(const Config& config) {
  std::string text;
  for (const auto& [name, value] : job_entries(config)) text += name + " = " + value + "\n";
  return XXH64(text.data(), text.size(), 0);
}

void Faults::throw_if_any() const {
  if (lines_.empty()) return;
  const std::size_t shown = std::min(lines_.size(), kMaxFaultsShown);
  std::string text = fmt::format("{}", fmt::join(lines_.begin(), lines_.begin() + shown, "\n"));
  if (shown < lines_.size()) text += fmt::format("\nand {} more", lines_.size() - shown);
  throw UsageError(text);
}

}  // namespace parley

#include "common/config/command_line.h"

#include "common/base/error.h"
#include "common/config/flags.h"
#include "common/config/pages.h"
#include "common/config/syntax.h"
#include "common/config/toml_file.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace parley {
namespace {

// The flags beside the keys. The last ones are the launcher's and the docs' own, and not in --help.
const std::vector<PlainFlag>& plain_flags() {
  static const std::vector<PlainFlag> list = {
      {"--config"},
      {"--rank"},
      {"--output-dir"},
      {"--insecure", true},
      {"--print-config", true},
      {"--check-config", true},
      {"--help", true},
      {"--version", true},
      {"--print-config-json", true},
      {"--print-config-markdown", true},
      {"--print-placement", true},
      {"--progress-fd"},
      {"--start-count"},
  };
  return list;
}

std::string program(Role role) { return fmt::format("parley-{}", role_name(role)); }

std::string help(Role role) {
  const bool worker = role == Role::worker;
  std::string text =
      fmt::format("Usage: {} [--config FILE] [--rank N] [--section.key VALUE]...\n\n{}\n\n", program(role),
                  worker ? "Trains on its share of the data, as one worker of a job."
                         : "Keeps parameters and optimizer, as one server of a job.");
  text += "  --config FILE      the config, a TOML file; flags win over it\n";
  text += fmt::format("  --rank N           index of this {} (default: the coordinator gives one)\n", role_name(role));
  if (worker) text += "  --device DEVICE    short for --worker.device\n";
  text +=
      "  --output-dir DIR   where to write report.json and metrics.jsonl (default: nowhere)\n"
      "  --insecure         allow listening beyond this host without keys\n"
      "  --print-config     print the effective value of every key and where it came from, and "
      "end\n"
      "  --check-config     check file and flags, and end\n"
      "  --help             print this page, and end\n"
      "  --version          print the version, and end\n"
      "\nEvery key of the config is a flag:\n";
  return text + help_page();
}

template <class Number>
std::optional<Number> whole_number(const RawFlags& flags, std::string_view name, Number high, Faults& faults) {
  const auto text = flags.value(name);
  if (!text) return std::nullopt;
  Number number{};
  const char* const end = text->data() + text->size();
  const auto [stop, fault] = std::from_chars(text->data(), end, number);
  if (fault == std::errc() && stop == end && number >= 0 && number <= high) return number;
  faults.add(fmt::format("{}: found {}, expected an integer from 0 to {}", name, in_quotes(printable(*text)), high));
  return std::nullopt;
}

std::string path_value(const RawFlags& flags, std::string_view name, Faults& faults) {
  const auto text = flags.value(name);
  if (text && text->empty()) faults.add(fmt::format("{}: found \"\", expected a path", name));
  return text.value_or("");
}

Action chosen_action(const RawFlags& flags, Faults& faults) {
  const std::pair<const char*, Action> actions[] = {
      {"--print-config", Action::print_config},
      {"--print-config-json", Action::print_config_json},
      {"--print-config-markdown", Action::print_config_markdown},
      {"--print-placement", Action::print_placement},
      {"--check-config", Action::check_config},
  };
  const char* chosen = nullptr;
  Action action = Action::run;
  for (const auto& [name, meaning] : actions) {
    if (!flags.value(name)) continue;
    if (chosen) faults.add(fmt::format("{}: cannot go together with {}", name, chosen));
    chosen = name;
    action = meaning;
  }
  return action;
}

void check_rank(const CommandLine& line, Faults& faults) {
  const Config& config = line.settings.config;
  if (line.role == Role::server && !uses_network(config)) {
    faults.add("parley-server: there is nothing to serve with sync.mode = none");
    return;
  }
  // In all-reduce mode it is not said here which servers exist beside the coordinator.
  const std::int64_t count = line.role == Role::worker ? worker_count(config) : server_count(config);
  if (!line.rank || count == 0 || line.rank->value < count) return;
  faults.add(fmt::format("--rank: found {}, expected an integer from 0 to {}: the job has {} {}{}", line.rank->value,
                         count - 1, count, role_name(line.role), count > 1 ? "s" : ""));
}

void check_address(const CommandLine& line, Faults& faults) {
  const Config& config = line.settings.config;
  if (!uses_network(config) || line.insecure) return;
  const std::string host = parse_host(config.cluster.bind).value_or("");
  if (is_loopback(host)) return;
  const Setting& setting = line.settings.entries[index_of(*find_key("cluster.bind"))];
  faults.add(
      fmt::format("cluster.bind = {} ({}): other hosts can reach it, and nothing would keep strangers out; "
                  "expected 127.0.0.1, or the flag --insecure on a network that you trust",
                  in_quotes(config.cluster.bind), setting.where));
}

// A process started by hand has nobody who tells it which port was taken.
void settle_coordinator_port(CommandLine& line) {
  std::string& coordinator = line.settings.config.cluster.coordinator;
  auto address = parse_host_port(coordinator);
  if (line.progress_fd || !address || address->port != 0) return;
  address->port = kDefaultCoordinatorPort;
  coordinator = to_text(*address);
}

}  // namespace

CommandLine parse_command_line(Role role, const std::vector<std::string>& arguments) {
  Faults faults;
  const RawFlags flags = read_flags(arguments, plain_flags(), role == Role::worker, faults);
  CommandLine line;
  line.role = role;
  // Who asks for help gets it, whatever else is wrong.
  if (flags.value("--help") || flags.value("--version")) {
    line.action = flags.value("--help") ? Action::print_help : Action::print_version;
    line.settings = combine({}, {});
    return line;
  }
  line.action = chosen_action(flags, faults);
  line.config_path = path_value(flags, "--config", faults);
  line.output_dir = path_value(flags, "--output-dir", faults);
  line.insecure = flags.value("--insecure").has_value();
  using Limit32 = std::numeric_limits<std::int32_t>;
  const auto rank = whole_number<std::int64_t>(flags, "--rank", Limit32::max(), faults);
  if (rank) line.rank = Rank(static_cast<std::uint32_t>(*rank));
  line.progress_fd = whole_number<int>(flags, "--progress-fd", Limit32::max(), faults);
  line.start_count = whole_number<std::uint64_t>(flags, "--start-count", Limit32::max(), faults).value_or(0);

  std::vector<Given> from_file;
  if (!line.config_path.empty()) from_file = read_config_file(line.config_path, faults);
  faults.throw_if_any();
  line.settings = combine(from_file, flags.keys);
  if (line.action == Action::run) {
    check_rank(line, faults);
    check_address(line, faults);
    faults.throw_if_any();
    settle_coordinator_port(line);
  }
  return line;
}

std::string page(const CommandLine& line) {
  switch (line.action) {
    case Action::print_help:
      return help(line.role);
    case Action::print_version:
      return fmt::format("{} {}\n", program(line.role), PARLEY_VERSION);
    case Action::print_config:
      return toml_page(line.settings);
    case Action::print_config_json:
      return json_page(line.settings);
    case Action::print_config_markdown:
      return markdown_page();
    case Action::check_config:
      return fmt::format("{}{}: valid\n", line.settings.warning.empty() ? "" : line.settings.warning + "\n",
                         line.config_path.empty() ? "the config" : printable(line.config_path));
    case Action::print_placement:
    case Action::run:
      break;
  }
  return "";
}

}  // namespace parley

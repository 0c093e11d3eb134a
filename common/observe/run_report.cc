#include "common/observe/run_report.h"

#include "common/base/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace parley {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no word for infinity or NaN.
Json number(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }

std::string bytes(std::uint64_t count) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", count) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Json shares_json(const TimeShares& shares) {
  return {{"data", number(shares.data)},
          {"compute", number(shares.compute)},
          {"communication", number(shares.communication)},
          {"waiting", number(shares.waiting)},
          {"evaluation", number(shares.evaluation)}};
}

Json provenance_json(const Provenance& provenance) {
  return {{"version", provenance.version},     {"commit", provenance.commit},
          {"compiler", provenance.compiler},   {"cpu", provenance.cpu},
          {"libraries", provenance.libraries}, {"config_hash", provenance.config_hash}};
}

}  // namespace

std::string to_json(const RunReport& report) {
  Json events = Json::array();
  for (const RunEvent& event : report.events)
    events.push_back({{"seconds", number(event.seconds)}, {"what", event.what}});
  const Json json = {{"mode", report.mode},
                     {"servers", report.servers},
                     {"workers", report.workers},
                     {"steps", report.steps},
                     {"seconds", number(report.seconds)},
                     {"test_accuracy", number(report.test_accuracy)},
                     {"test_loss", number(report.test_loss)},
                     {"samples_per_second", number(report.samples_per_second)},
                     {"weights_digest", report.weights_digest},
                     {"bytes_pushed", report.bytes_pushed},
                     {"bytes_pulled", report.bytes_pulled},
                     {"staleness_mean", number(report.staleness_mean)},
                     {"staleness_max", report.staleness_max},
                     {"update_lag_mean", number(report.update_lag_mean)},
                     {"update_lag_max", report.update_lag_max},
                     {"time_shares", shares_json(report.time_shares)},
                     {"events", std::move(events)},
                     {"provenance", provenance_json(report.provenance)}};
  // What other programs told us (a CPU's name) may not be UTF-8; a report is not lost over it.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_table(const RunReport& report) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{}{:<22}{}", text.empty() ? "" : "\n", name, value);
  };
  const TimeShares& shares = report.time_shares;
  row("mode", report.mode);
  row("servers", fmt::to_string(report.servers));
  row("workers", fmt::to_string(report.workers));
  row("steps", fmt::to_string(report.steps));
  row("seconds", fmt::format("{:.2f}", report.seconds));
  if (report.test_accuracy) row("test accuracy", fmt::format("{:.2f} %", 100 * *report.test_accuracy));
  if (report.test_loss) row("test loss", fmt::format("{:.4f}", *report.test_loss));
  row("samples/s", fmt::format("{:.0f}", report.samples_per_second));
  row("compute", fmt::format("{:.1f} %", 100 * shares.compute));
  row("communication", fmt::format("{:.1f} %", 100 * shares.communication));
  row("waiting", fmt::format("{:.1f} %", 100 * shares.waiting));
  row("data, evaluation", fmt::format("{:.1f} %, {:.1f} %", 100 * shares.data, 100 * shares.evaluation));
  row("bytes pushed", bytes(report.bytes_pushed));
  row("bytes pulled", bytes(report.bytes_pulled));
  row("staleness", fmt::format("mean {:.2f}, max {} clocks", report.staleness_mean, report.staleness_max));
  row("update lag", fmt::format("mean {:.2f}, max {} updates", report.update_lag_mean, report.update_lag_max));
  for (const RunEvent& event : report.events) row("event", fmt::format("{:.1f} s: {}", event.seconds, event.what));
  row("weights digest", report.weights_digest);
  return text;
}

void write_report(const RunReport& report, const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "report.json";
  const std::filesystem::path draft = directory / "report.json.tmp";
  std::ofstream file(draft, std::ios::trunc);
  file << to_json(report);
  file.close();
  std::error_code fault;
  if (file.good()) std::filesystem::rename(draft, path, fault);
  if (!file.good() || fault)
    throw RunError(
        fmt::format("{}: cannot be written{}", path.string(), fault ? ": " + fault.message() : std::string()));
}

}  // namespace parley

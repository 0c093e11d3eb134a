// What a run came to: report.json, and the same numbers as a table for people.
//
// Plain values and pure functions, but for write_report. The JSON names are relied on by users and checks
// (docs/design.md); a value that this run has not got is null there and left out of the table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parley {

// Shares of `seconds`, 0 to 1, of the process that reports.
struct TimeShares {
  double data = 0;
  double compute = 0;
  double communication = 0;
  double waiting = 0;
  double evaluation = 0;
};

struct RunEvent {
  double seconds = 0;  // since the start of the run
  std::string what;    // one line: "worker 1 was lost and came back at clock 120"
};

// What made the numbers.
struct Provenance {
  std::string version;
  std::string commit;
  std::string compiler;
  std::string cpu;
  std::map<std::string, std::string> libraries;  // name -> version
  std::string config_hash;
};

struct RunReport {
  std::string mode;
  std::uint32_t servers = 0;
  std::uint32_t workers = 0;
  std::uint64_t steps = 0;              // clock of the final weights
  double seconds = 0;                   // from the first step to the final weights, evaluations in between included
  std::optional<double> test_accuracy;  // 0 to 1
  std::optional<double> test_loss;
  double samples_per_second = 0;  // over all workers
  std::string weights_digest;
  std::uint64_t bytes_pushed = 0;  // of all workers
  std::uint64_t bytes_pulled = 0;
  double staleness_mean = 0;  // clocks
  std::uint64_t staleness_max = 0;
  double update_lag_mean = 0;  // updates
  std::uint64_t update_lag_max = 0;
  TimeShares time_shares;
  std::vector<RunEvent> events;
  Provenance provenance;
};

std::string to_json(const RunReport& report);
// A line a number, without a newline at the end.
std::string to_table(const RunReport& report);
// Writes report.json into `directory`, whole or not at all. RunError naming the file.
void write_report(const RunReport& report, const std::filesystem::path& directory);

}  // namespace parley

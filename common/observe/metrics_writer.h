// Appends steps to metrics.jsonl, one JSON object a line. Several processes may write one file: lines are collected and
// appended whole (O_APPEND, one write a batch).
//
// Belongs to one thread. A failing write is a RunError that names the file.
#pragma once

#include "common/observe/step_record.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace parley {

class MetricsWriter {
 public:
  // Creates the file if it is not there. every_steps: clocks that are no multiple of it are left out; at least 1.
  MetricsWriter(std::filesystem::path path, std::uint64_t every_steps);
  // Writes what is left, as far as possible.
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void write(const StepRecord& step);
  void flush();

 private:
  std::filesystem::path path_;
  std::uint64_t every_steps_;
  int file_ = -1;
  std::string pending_;
};

}  // namespace parley

#include "common/observe/run_report.h"

#include "common/base/error.h"
#include "common/observe/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <limits>

namespace parley {
namespace {

using testing::HasSubstr;
using testing::Not;

RunReport sample() {
  return {.mode = "bsp",
          .servers = 2,
          .workers = 3,
          .steps = 640,
          .seconds = 12.5,
          .test_accuracy = 0.9781,
          .test_loss = 0.0712,
          .samples_per_second = 5120,
          .weights_digest = "00ff",
          .bytes_pushed = 3 << 20,
          .bytes_pulled = 512,
          .staleness_mean = 1.25,
          .staleness_max = 3,
          .time_shares = {.data = 0.01, .compute = 0.7, .communication = 0.1, .waiting = 0.15},
          .events = {{3.5, "worker 1 was lost"}},
          .provenance = provenance({{"torch", "2.11.0"}}, "abc")};
}

TEST(RunReport, HasTheNamesThatChecksRelyOn) {
  const auto json = nlohmann::json::parse(to_json(sample()));
  for (const char* name : {"mode", "servers", "workers", "steps", "seconds", "test_accuracy", "test_loss",
                           "samples_per_second", "weights_digest", "bytes_pushed", "bytes_pulled", "staleness_mean",
                           "staleness_max", "time_shares", "events", "provenance"})
    EXPECT_TRUE(json.contains(name)) << name;
  EXPECT_EQ(json["steps"], 640);
  EXPECT_EQ(json["test_accuracy"], 0.9781);
  EXPECT_EQ(json["time_shares"]["compute"], 0.7);
  EXPECT_EQ(json["events"][0]["what"], "worker 1 was lost");
  for (const char* name : {"version", "commit", "compiler", "cpu", "libraries", "config_hash"})
    EXPECT_FALSE(json["provenance"][name].empty()) << name;
  EXPECT_EQ(json["provenance"]["libraries"]["torch"], "2.11.0");
}

TEST(RunReport, WhatIsNotThereIsNull) {
  RunReport report = sample();
  report.test_accuracy.reset();
  report.test_loss = std::numeric_limits<double>::quiet_NaN();
  report.provenance.cpu = "\xff";
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["test_accuracy"].is_null());
  EXPECT_TRUE(json["test_loss"].is_null());
  EXPECT_THAT(to_table(report), Not(HasSubstr("test accuracy")));
}

TEST(RunReport, TheTableShowsTheSameNumbers) {
  const std::string table = to_table(sample());
  EXPECT_THAT(table, HasSubstr("test accuracy         97.81 %\n"));
  EXPECT_THAT(table, HasSubstr("bytes pushed          3.0 MiB\n"));
  EXPECT_THAT(table, HasSubstr("bytes pulled          512 B\n"));
  EXPECT_THAT(table, HasSubstr("staleness             mean 1.25, max 3 clocks\n"));
  EXPECT_THAT(table, HasSubstr("weights digest        00ff"));
}

TEST(RunReport, IsWrittenWholeOrNamesTheFile) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "run_report_test";
  std::filesystem::create_directories(directory);
  write_report(sample(), directory);
  std::ifstream file(directory / "report.json");
  EXPECT_EQ(nlohmann::json::parse(file)["mode"], "bsp");
  EXPECT_FALSE(std::filesystem::exists(directory / "report.json.tmp"));
  try {
    write_report(sample(), directory / "missing");
    FAIL() << "written into a directory that is not there";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing/report.json"));
  }
}

}  // namespace
}  // namespace parley

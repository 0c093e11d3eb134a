#include "common/observe/metrics_writer.h"

#include "common/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::HasSubstr;

class MetricsWriterTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }

  std::vector<nlohmann::json> lines() const {
    std::ifstream file(path_);
    std::vector<nlohmann::json> list;
    for (std::string line; std::getline(file, line);) list.push_back(nlohmann::json::parse(line));
    return list;
  }

  const std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / "metrics_writer_test.jsonl";
};

TEST_F(MetricsWriterTest, WritesALineAStep) {
  {
    MetricsWriter writer(path_, 1);
    writer.write(
        {.rank = Rank(2),
         .clock = Clock(7),
         .epoch = 1,
         .samples = 32,
         .loss = 0.5,
         .learning_rate = 0.05,
         .times = {.data = 0.001, .forward = 0.002, .backward = 0.003, .communication = 0.004, .waiting = 0.005}});
    writer.write({.rank = Rank(2), .clock = Clock(8)});
    writer.write({.rank = Rank(2), .clock = Clock(9), .loss = std::numeric_limits<double>::infinity()});
  }
  const auto found = lines();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0]["rank"], 2);
  EXPECT_EQ(found[0]["clock"], 7);
  EXPECT_EQ(found[0]["epoch"], 1);
  EXPECT_EQ(found[0]["samples"], 32);
  EXPECT_EQ(found[0]["loss"], 0.5);
  EXPECT_EQ(found[0]["learning_rate"], 0.05);
  EXPECT_EQ(found[0]["waiting_seconds"], 0.005);
  EXPECT_TRUE(found[1]["loss"].is_null());
  EXPECT_TRUE(found[2]["loss"].is_null());
}

TEST_F(MetricsWriterTest, SeveralWritersAppendWholeLinesToOneFile) {
  {
    MetricsWriter first(path_, 1);
    MetricsWriter second(path_, 1);
    for (std::uint64_t clock = 0; clock < 200; ++clock) {
      first.write({.rank = Rank(0), .clock = Clock(clock)});
      second.write({.rank = Rank(1), .clock = Clock(clock)});
    }
  }
  EXPECT_EQ(lines().size(), 400U);
}

TEST_F(MetricsWriterTest, LeavesOutStepsInBetween) {
  {
    MetricsWriter writer(path_, 10);
    for (std::uint64_t clock = 0; clock < 25; ++clock) writer.write({.clock = Clock(clock)});
  }
  EXPECT_EQ(lines().size(), 3U);
}

TEST_F(MetricsWriterTest, AFileThatCannotBeWrittenIsNamed) {
  try {
    MetricsWriter writer(path_ / "x", 1);
    FAIL() << "opened";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path_.string()));
  }
}

}  // namespace
}  // namespace parley

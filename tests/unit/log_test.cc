#include "common/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace parley {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

TEST(Log, a_line_names_the_process_the_file_and_the_text) {
  CaptureStderr();
  log::start("server 0");
  log::info("listening on port {}", 4242);
  log::rename("server 1");
  log::warning("late");
  log::flush();
  const std::string written = GetCapturedStderr();
  EXPECT_NE(written.find("server 0: listening on port 4242\n"), std::string::npos) << written;
  EXPECT_NE(written.find("server 1: late\n"), std::string::npos) << written;
  EXPECT_NE(written.find("log_test.cc:"), std::string::npos) << written;
}

TEST(LogDeathTest, a_failed_check_names_condition_and_values) {
  const int slices = 3;
  EXPECT_DEATH(PARLEY_CHECK(slices == 4, "expected {} slices", 4), "check failed: slices == 4: expected 4 slices");
}

TEST(Log, a_check_that_holds_says_nothing) {
  CaptureStderr();
  PARLEY_CHECK(1 + 1 == 2, "arithmetic");
  EXPECT_EQ(GetCapturedStderr(), "");
}

}  // namespace
}  // namespace parley

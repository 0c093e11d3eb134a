#include "common/transport/process_limits.h"

#include "common/base/error.h"
#include "common/transport/context.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

namespace parley {
namespace {

void allow_files(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
}

template <class Call>
void exit_with_message(Call call) {
  try {
    call();
  } catch (const RunError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
  std::exit(0);
}

TEST(ProcessLimits, CountEverySocket) {
  const std::uint64_t alone = open_files_needed({});
  EXPECT_GT(open_files_needed({.dealers = 10}), alone + 10);
  EXPECT_GT(open_files_needed({.routers = 10}), alone + 10);
  EXPECT_GE(open_files_needed({.accepted = 1000}), alone + 1000);
}

TEST(ProcessLimitsDeathTest, RaiseTheSoftLimit) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        allow_files(100, 200);
        std::exit(raise_open_file_limit() == 200 && open_file_limit() == 200 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        allow_files(100, 200);
        exit_with_message([] { require_open_files(150, "server 0"); });
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessLimitsDeathTest, NameTheLimitThatIsTooLow) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        allow_files(32, 32);
        exit_with_message([] { require_open_files(150, "server 0"); });
      },
      testing::ExitedWithCode(1), "server 0 needs about 150 open files, but the limit \\(ulimit -n\\) is 32");
}

// ZeroMQ would abort.
TEST(ProcessLimitsDeathTest, KeepZeroMqFromStartingWithoutFiles) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        allow_files(8, 8);
        exit_with_message([] { const Context context; });
      },
      testing::ExitedWithCode(1), "limit \\(ulimit -n\\) is 8");
}

}  // namespace
}  // namespace parley

#include "common/observe/progress_writer.h"

#include "common/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace parley {
namespace {

using testing::HasSubstr;

class ProgressWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = ends[0];
    writer_ = ends[1];
  }
  void TearDown() override { ::close(reader_); }

  std::string read_all() const {
    std::string text(1 << 20, '\0');
    const ssize_t count = ::read(reader_, text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

  int reader_ = -1;
  int writer_ = -1;
};

Instant at(double seconds) { return Instant(from_seconds(seconds)); }

TEST_F(ProgressWriterTest, WritesAtMostTenLinesASecondAndTheLastOne) {
  {
    ProgressWriter writer(writer_);
    for (int i = 0; i < 100; ++i)
      writer.write(at(0.01 * i), {.clock = Clock(static_cast<std::uint64_t>(i)), .total = 100, .loss = 0.25});
    writer.write(at(0.995), {.clock = Clock(100), .total = 100, .accuracy = 0.5}, true);
  }
  const std::string text = read_all();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["clock"], 0);
  EXPECT_EQ(first["total"], 100);
  EXPECT_EQ(first["loss"], 0.25);
  EXPECT_TRUE(first["accuracy"].is_null());
  EXPECT_THAT(text, HasSubstr("\"clock\":100,"));
}

TEST_F(ProgressWriterTest, AReaderThatDoesNotReadHoldsNothingUp) {
  ProgressWriter writer(writer_);
  for (int i = 0; i < 2000; ++i) writer.write(at(i), {.clock = Clock(1)});
  // What fitted are whole lines.
  EXPECT_EQ(read_all().back(), '\n');
}

TEST_F(ProgressWriterTest, ADescriptorThatIsNotOpenIsRefused) {
  ::close(writer_);
  try {
    const ProgressWriter writer(writer_);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--progress-fd"));
  }
}

}  // namespace
}  // namespace parley

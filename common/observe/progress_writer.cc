#include "common/observe/progress_writer.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <climits>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace parley {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : "null";
}

}  // namespace

ProgressWriter::ProgressWriter(int fd) : fd_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
    throw UsageError(fmt::format("--progress-fd: found {}, expected an open file descriptor", fd));
}

ProgressWriter::~ProgressWriter() { ::close(fd_); }

void ProgressWriter::write(Instant now, const Progress& progress, bool last) {
  if (!last && next_ && now < *next_) return;
  next_ = now + kInterval;
  const std::string line =
      fmt::format(R"({{"clock":{},"total":{},"epoch":{},"loss":{},"accuracy":{},"samples_per_second":{}}})"
                  "\n",
                  progress.clock, progress.total, progress.epoch, number(progress.loss), number(progress.accuracy),
                  number(progress.samples_per_second));
  // Up to this size a pipe takes a line whole or not at all.
  PARLEY_CHECK(line.size() <= PIPE_BUF, "{} bytes", line.size());
  [[maybe_unused]] const ssize_t dropped_or_written = ::write(fd_, line.data(), line.size());
}

}  // namespace parley

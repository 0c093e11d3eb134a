#include "common/observe/metrics_writer.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace parley {
namespace {

// Large enough that a write is rare, small enough that a reader who follows the file sees steps soon.
constexpr std::size_t kBatchBytes = 4096;

// JSON has no word for infinity or NaN.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : "null"; }

void append_line(std::string& text, const StepRecord& step) {
  const StepTimes& times = step.times;
  fmt::format_to(std::back_inserter(text),
                 R"({{"rank":{},"clock":{},"epoch":{},"samples":{},"loss":{},"learning_rate":{},)"
                 R"("data_seconds":{:.6f},"forward_seconds":{:.6f},"backward_seconds":{:.6f},)"
                 R"("communication_seconds":{:.6f},"waiting_seconds":{:.6f}}})"
                 "\n",
                 step.rank, step.clock, step.epoch, step.samples, step.loss ? number(*step.loss) : "null",
                 number(step.learning_rate), times.data, times.forward, times.backward, times.communication,
                 times.waiting);
}

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path path, std::uint64_t every_steps)
    : path_(std::move(path)), every_steps_(every_steps) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0)
    throw RunError(fmt::format("{}: cannot be opened for writing: {}", path_.string(), std::strerror(errno)));
  pending_.reserve(2 * kBatchBytes);
}

MetricsWriter::~MetricsWriter() {
  try {
    flush();
  } catch (const std::exception& error) {
    log::warning("{}", error.what());
  }
  ::close(file_);
}

void MetricsWriter::write(const StepRecord& step) {
  if (step.clock.value % every_steps_ != 0) return;
  append_line(pending_, step);
  if (pending_.size() >= kBatchBytes) flush();
}

void MetricsWriter::flush() {
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int fault = errno;
      pending_.clear();  // not again from the destructor
      throw RunError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(fault)));
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  pending_.clear();
}

}  // namespace parley

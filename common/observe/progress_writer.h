// Progress for whoever started this process and draws a bar: JSON lines on a file descriptor that was handed down.
//
// A reader that is slow or gone never holds up training: the descriptor is made non-blocking, a line that does not fit
// is dropped, and so is one that comes within a tenth of a second of the one before. main ignores SIGPIPE. Belongs to
// one thread.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"

#include <cstdint>
#include <optional>

namespace parley {

struct Progress {
  Clock clock;              // steps done
  std::uint64_t total = 0;  // steps of the whole run; an estimate where data is handed out on demand
  std::uint64_t epoch = 0;  // 0-based
  std::optional<double> loss;
  std::optional<double> accuracy;  // of the last evaluation
  double samples_per_second = 0;   // over all workers, since the start
};

class ProgressWriter {
 public:
  // Takes over `fd` and closes it. UsageError naming --progress-fd where it is not open.
  explicit ProgressWriter(int fd);
  ~ProgressWriter();
  ProgressWriter(const ProgressWriter&) = delete;
  ProgressWriter& operator=(const ProgressWriter&) = delete;

  // last: written whatever the time since the one before.
  void write(Instant now, const Progress& progress, bool last = false);

 private:
  int fd_;
  std::optional<Instant> next_;
};

}  // namespace parley

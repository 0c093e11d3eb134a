#include "common/transport/process_limits.h"

#include "common/base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <malloc.h>
#include <sys/resource.h>

namespace parley {
namespace {

// Standard streams, libraries, a data or checkpoint file.
constexpr std::uint64_t kSpareFiles = 16;

rlimit read_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw RunError(fmt::format("cannot read the limit of open files: {}", std::strerror(errno)));
  return limit;
}

}  // namespace

std::uint64_t open_files_needed(const SocketPlan& plan) {
  // ZeroMQ 4.3: an eventfd a context, an eventfd and an epoll an I/O thread and for the reaper, an eventfd a socket. A
  // dealer is three sockets (itself and both ends of its monitor) and a connection; a router is a socket and a
  // listener.
  return kSpareFiles + plan.contexts * 3 + static_cast<std::uint64_t>(plan.io_threads) * 2 + plan.routers * 2 +
         plan.dealers * 4 + plan.mailboxes + plan.accepted;
}

std::uint64_t open_file_limit() { return read_limit().rlim_cur; }

std::uint64_t raise_open_file_limit() {
  rlimit limit = read_limit();
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return read_limit().rlim_cur;
  }
  return limit.rlim_cur;
}

void require_open_files(std::uint64_t needed, std::string_view who) {
  if (open_file_limit() >= needed) return;
  const std::uint64_t allowed = raise_open_file_limit();
  if (allowed >= needed) return;
  throw RunError(fmt::format("{} needs about {} open files, but the limit (ulimit -n) is {}: raise it to at least {}",
                             who, needed, allowed, needed));
}

void keep_freed_memory() {
  // 32 MiB is the most that glibc takes from its own heaps; each of the two calls also ends its adaptive thresholds.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace parley

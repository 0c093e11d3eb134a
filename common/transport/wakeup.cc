#include "common/transport/wakeup.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace parley {
namespace {

int open_eventfd() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw RunError(fmt::format("cannot open an eventfd: {}", std::strerror(errno)));
  return fd;
}

}  // namespace

Wakeup::Wakeup() : fd_(open_eventfd()) {}

Wakeup::~Wakeup() { close(fd_); }

void Wakeup::notify() {
  const std::uint64_t one = 1;
  // EAGAIN means that the counter is full: the waiter is woken already.
  while (write(fd_, &one, sizeof one) < 0)
    if (errno != EINTR) return;
}

void Wakeup::clear() {
  std::uint64_t count = 0;
  while (read(fd_, &count, sizeof count) < 0)
    if (errno != EINTR) return;
}

}  // namespace parley

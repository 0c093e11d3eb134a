#include "common/transport/event_loop.h"

#include "common/base/error.h"
#include "common/transport/monotonic_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace parley {
namespace {

// Longest single wait; a later deadline is met by waiting again.
constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(1);

// Rounded up: waking before the deadline would spin until it is there.
long wait_ms(Instant deadline, Instant now) {
  if (deadline <= now) return 0;
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
  return static_cast<long>(std::min(left, kLongestWait).count());
}

}  // namespace

Poller::Token Poller::watch(const RouterSocket& socket) {
  sources_.emplace_back(&socket);
  ready_.push_back(0);
  return sources_.size() - 1;
}

Poller::Token Poller::watch(const DealerSocket& socket) {
  sources_.emplace_back(&socket);
  ready_.push_back(0);
  return sources_.size() - 1;
}

Poller::Token Poller::watch(const Wakeup& wakeup) {
  sources_.emplace_back(&wakeup);
  ready_.push_back(0);
  return sources_.size() - 1;
}

void Poller::wait(Instant deadline) {
  items_.clear();
  owners_.clear();
  const auto add = [this](void* socket, int fd, Token owner) {
    items_.push_back({socket, fd, ZMQ_POLLIN, 0});
    owners_.push_back(owner);
  };
  for (Token i = 0; i < sources_.size(); ++i) {
    if (const auto* router = std::get_if<const RouterSocket*>(&sources_[i])) {
      add((*router)->handle(), -1, i);
    } else if (const auto* wakeup = std::get_if<const Wakeup*>(&sources_[i])) {
      add(nullptr, (*wakeup)->fd(), i);
    } else {
      const DealerSocket& dealer = *std::get<const DealerSocket*>(sources_[i]);
      deadline = std::min(deadline, dealer.next_deadline());
      if (dealer.handle() == nullptr) continue;
      add(dealer.handle(), -1, i);
      add(dealer.monitor(), -1, i);
    }
  }

  Instant now = monotonic_now();
  while (true) {
    const int count = zmq_poll(items_.data(), static_cast<int>(items_.size()), wait_ms(deadline, now));
    if (count < 0 && errno != EINTR) throw RunError(fmt::format("cannot wait for messages: {}", zmq_strerror(errno)));
    now = monotonic_now();
    if (count > 0 || now >= deadline) break;
  }

  std::ranges::fill(ready_, 0);
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (items_[i].revents != 0) ready_[owners_[i]] = 1;
  for (Token i = 0; i < sources_.size(); ++i)
    if (const auto* dealer = std::get_if<const DealerSocket*>(&sources_[i]))
      if (now >= (*dealer)->next_deadline()) ready_[i] = 1;
}

}  // namespace parley

#include "server/coordinator_loop.h"

#include "common/base/log.h"
#include "common/transport/event_loop.h"
#include "common/transport/monotonic_clock.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace parley {
namespace {

constexpr Duration kIdle = std::chrono::milliseconds(250);
// Between two log lines that say whom the coordinator waits for.
constexpr Duration kReminder = std::chrono::seconds(10);
// After the end: how long a process that has not heard of it may take to send its next heartbeat.
constexpr Duration kFarewell = std::chrono::milliseconds(700);
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

CoordinatorLoop::CoordinatorLoop(const CoordinatorOptions& options, const Address& address)
    : socket_(context_), address_(socket_.bind(address)), coordinator_(options) {
  thread_ = std::thread([this] { run(); });
}

CoordinatorLoop::~CoordinatorLoop() {
  ending_ = true;
  wakeup_.notify();
  thread_.join();
}

void CoordinatorLoop::run() {
  try {
    loop();
  } catch (const std::exception& error) {
    log::error("coordinator: {}", error.what());  // the members' deadlines end the job
  }
}

void CoordinatorLoop::loop() {
  Poller poller;
  const auto wake = poller.watch(wakeup_);
  poller.watch(socket_);
  Coordinator::Out out;
  Instant now = monotonic_now();
  Instant next_reminder = now + kReminder;
  coordinator_.start(now);
  Instant last = kNever;  // when to end, once that was asked for
  while (now < last) {
    poller.wait(std::min({coordinator_.next_deadline(), last, now + kIdle}));
    if (poller.ready(wake)) wakeup_.clear();
    now = monotonic_now();
    for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
      auto received = socket_.receive();
      if (!received) break;
      const Route route = received->route;
      if (const auto message = intake_.admit(std::move(*received), now))
        coordinator_.receive(route, *message, now, out);
    }
    coordinator_.tick(now, out);
    send(out, now);
    if (!coordinator_.over() && now >= next_reminder) {
      next_reminder = now + kReminder;
      if (coordinator_.phase() == wire::Phase::gathering) log::info("waiting for {}", coordinator_.waiting_for());
    }
    if (ending_) last = std::min(last, coordinator_.over() ? now + kFarewell : now);
  }
  socket_.close(kLinger);
}

void CoordinatorLoop::send(Coordinator::Out& out, Instant now) {
  for (auto& send : out.sends())
    if (socket_.send(send.to, std::move(send.message)) == SendResult::unreachable)
      coordinator_.unreachable(send.to, now);
  out.clear();
}

}  // namespace parley

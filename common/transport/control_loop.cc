#include "common/transport/control_loop.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/event_loop.h"
#include "common/transport/monotonic_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <tuple>

namespace parley {
namespace {

// Between two log lines while the coordinator cannot be reached.
constexpr Duration kReminder = std::chrono::seconds(5);
// Between two questions why it cannot be.
constexpr Duration kProbe = std::chrono::seconds(1);
constexpr Duration kIdle = std::chrono::seconds(1);
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

ControlLoop::ControlLoop(const MemberOptions& options, const Address& coordinator)
    : options_(options), socket_(context_, coordinator), next_reminder_(monotonic_now() + kReminder), member_(options) {
  member_.start(monotonic_now(), said_);
  said_.clear();  // Register leaves with the first connection
  thread_ = std::thread([this] { run(); });
}

ControlLoop::~ControlLoop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wakeup_.notify();
  thread_.join();
}

void ControlLoop::run() {
  try {
    loop();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    broken_ = error.what();
  }
  notify();
}

void ControlLoop::loop() {
  Poller poller;
  const auto wake = poller.watch(wakeup_);
  poller.watch(socket_);
  Out out;
  for (bool ending = false; !ending;) {
    Instant deadline;
    {
      const std::lock_guard lock(mutex_);
      deadline = std::min(member_.next_deadline(), monotonic_now() + kIdle);
    }
    poller.wait(deadline);
    if (poller.ready(wake)) wakeup_.clear();
    const Instant now = monotonic_now();
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      const auto state = [this] {
        return std::tuple(member_.welcomed(), member_.membership().epoch, member_.over().has_value());
      };
      const auto before = state();
      take_events(now, out);
      take_messages(now, out);
      member_.tick(now, out);
      std::ranges::move(said_, std::back_inserter(out));
      said_.clear();
      changed = state() != before;
      ending = ending_;
    }
    send(out);
    if (changed) notify();
    changed_.notify_all();
  }
  socket_.close(kLinger);
}

void ControlLoop::take_events(Instant now, Out& out) {
  while (const auto event = socket_.next_event(now)) {
    if (*event == ConnectionEvent::connected) {
      member_.reconnected(now, out);
    } else if (*event == ConnectionEvent::failed && now >= next_probe_) {
      next_probe_ = now + kProbe;
      why_ = why_unreachable(socket_.peer(), std::chrono::milliseconds(200));
      member_.connect_failed(why_);
    }
  }
  if (socket_.connected() || now < next_reminder_ || member_.over()) return;
  next_reminder_ = now + kReminder;
  log::info("waiting for the coordinator (server 0 at {}){}", socket_.peer().endpoint(),
            why_.empty() ? "" : ": " + why_);
}

void ControlLoop::take_messages(Instant now, Out& out) {
  for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
    auto received = socket_.receive();
    if (!received) return;
    if (received->frames.empty()) continue;
    auto message = Incoming::parse(std::move(received->frames.front()), {});
    if (message) {
      member_.receive(*message, now, out);
    } else {
      log::warning("the coordinator at {} sent what is no message: {}", socket_.peer().endpoint(),
                   message.error().message);
    }
  }
}

// What cannot leave now is said again by Member on the next connection.
void ControlLoop::send(Out& out) {
  for (Outgoing& message : out)
    if (socket_.connected()) (void)socket_.send(std::move(message));
  out.clear();
}

void ControlLoop::notify() {
  changed_.notify_all();
  const std::lock_guard lock(subscriber_mutex_);
  if (subscriber_) subscriber_();
}

void ControlLoop::subscribe(std::function<void()> on_change) {
  const std::lock_guard lock(subscriber_mutex_);
  subscriber_ = std::move(on_change);
}

template <class Call>
void ControlLoop::say(Call call) {
  {
    const std::lock_guard lock(mutex_);
    call(said_);
  }
  wakeup_.notify();
}

template <class Ready>
void ControlLoop::wait(Ready ready) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !broken_.empty() || member_.over() || ready(); });
  if (!broken_.empty()) throw RunError(broken_);
  if (ready()) return;
  throw RunError(member_.over()->ok ? "the job ended early: " + member_.over()->reason : member_.over()->reason);
}

std::pair<Rank, Incarnation> ControlLoop::wait_welcome() {
  wait([this] { return member_.welcomed(); });
  const std::lock_guard lock(mutex_);
  return {member_.rank(), member_.incarnation()};
}

MembershipView ControlLoop::wait_phase(wire::Phase at_least) {
  const auto there = [this, at_least] {
    return member_.membership().epoch > 0 && member_.membership().phase >= at_least;
  };
  wait(there);
  const std::lock_guard lock(mutex_);
  return member_.membership();
}

JobEnd ControlLoop::wait_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !broken_.empty() || member_.over().has_value(); });
  return member_.over() ? *member_.over() : JobEnd{false, broken_, {}};
}

bool ControlLoop::over() const {
  const std::lock_guard lock(mutex_);
  return !broken_.empty() || member_.over().has_value();
}

void ControlLoop::throw_if_over() const {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) throw RunError(broken_);
  if (member_.over()) throw RunError(member_.over()->reason);
}

Clock ControlLoop::stop_clock() const {
  const std::lock_guard lock(mutex_);
  return member_.membership().stop_clock;
}

void ControlLoop::finished(Clock clock) {
  say([&](Out& out) { member_.finished(clock, out); });
}

void ControlLoop::request_stop(Clock clock) {
  say([&](Out& out) { member_.request_stop(clock, out); });
}

void ControlLoop::done(const Stats& stats) {
  say([&](Out& out) { member_.done(stats, out); });
}

void ControlLoop::fail(wire::Fault fault, const std::string& text) {
  say([&](Out& out) { member_.fail(fault, text, out); });
}

void ControlLoop::ask_block(const std::optional<BlockRange>& completed) {
  say([&](Out& out) { member_.next_block(completed, out); });
}

std::optional<BlockRange> ControlLoop::take_block() {
  std::optional<std::optional<BlockRange>> block;
  wait([&] {
    if (!block) block = member_.take_block();
    return block.has_value();
  });
  return *block;
}

void ControlLoop::store_set(const std::string& key, std::span<const std::byte> value) {
  say([&](Out& out) { member_.store_set(key, value, out); });
}

std::vector<std::byte> ControlLoop::store_get(const std::string& key, Duration timeout) {
  say([&](Out& out) { member_.store_get(key, out); });
  std::unique_lock lock(mutex_);
  std::optional<std::vector<std::byte>> value;
  changed_.wait_for(lock, timeout, [&] {
    if (!value) value = member_.take_value(key);
    return value || !broken_.empty() || member_.over();
  });
  if (value) return std::move(*value);
  if (!broken_.empty()) throw RunError(broken_);
  if (member_.over()) throw RunError(member_.over()->reason);
  throw RunError(fmt::format("rendezvous: key '{}' was not set within {:.1f} s", key, to_seconds(timeout)));
}

}  // namespace parley

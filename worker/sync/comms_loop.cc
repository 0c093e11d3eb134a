#include "worker/sync/comms_loop.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/address.h"
#include "common/transport/event_loop.h"
#include "common/transport/intake.h"
#include "common/transport/monotonic_clock.h"
#include "common/transport/process_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace parley {
namespace {

// Between two log lines that say what is waited for.
constexpr Duration kReminder = std::chrono::seconds(10);
// While the trainer waits for sends that ZeroMQ has not released yet, though their answers are here: rare and short.
constexpr Duration kReleasePoll = std::chrono::milliseconds(1);
// A command a slice, and a handful besides.
constexpr std::size_t kCommandsBesides = 16;

}  // namespace

CommsLoop::CommsLoop(ControlLoop& control, ParameterClient& client, const Layout& layout,
                     std::span<const std::string> shards, Duration connect_timeout)
    : control_(control),
      connect_timeout_(connect_timeout),
      client_(client),
      last_progress_(monotonic_now()),
      present_(layout.slice_count()),
      mailbox_(layout.slice_count() + kCommandsBesides) {
  // Said before the first connection, since ZeroMQ runs out of files at any of a dozen places. Beside these
  // sockets there are the control connection and its context.
  SocketPlan plan;
  plan.contexts = 2;
  plan.io_threads = 2;
  plan.dealers = shards.size() + 1;
  plan.mailboxes = 2;
  require_open_files(open_files_needed(plan), fmt::format("a worker of {} shards", shards.size()));
  for (const std::string& shard : shards) {
    auto address = read_address(shard);
    if (!address) throw RunError(fmt::format("shard address '{}': {}", shard, address.error().message));
    sockets_.push_back(std::make_unique<DealerSocket>(context_, *address));
    unconnected_since_.emplace_back(monotonic_now());
  }
  for (std::size_t slice = 0; slice < present_.size(); ++slice)
    present_[slice].reserve(layout.slice(SliceId(static_cast<std::uint32_t>(slice))).parts.size());
  thread_ = std::thread([this] { run(); });
}

CommsLoop::~CommsLoop() {
  post({Command::Kind::end, {}, {}, 0, false});
  thread_.join();
}

void CommsLoop::post(Command command) { PARLEY_CHECK(mailbox_.push(command), "a step has one command a slice"); }

void CommsLoop::begin(Clock clock, std::uint64_t samples) {
  {
    const std::lock_guard lock(mutex_);
    progress_.complete = false;
  }
  post({Command::Kind::begin, {}, clock, samples, false});
}

void CommsLoop::ready(SliceId slice, std::span<const std::uint8_t> present) {
  present_[slice.value].assign(present.begin(), present.end());
  post({Command::Kind::ready, slice, {}, 0, false});
}

void CommsLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    progress_.complete = false;
  }
  post({Command::Kind::stop, {}, {}, 0, false});
}

void CommsLoop::finish(Clock clock, bool group_stops) { post({Command::Kind::finish, {}, clock, 0, group_stops}); }

void CommsLoop::pull_final() {
  {
    const std::lock_guard lock(mutex_);
    progress_.complete = false;
  }
  post({Command::Kind::pull_final, {}, {}, 0, false});
}

CommsLoop::Progress CommsLoop::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void CommsLoop::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void CommsLoop::throw_fault() const { throw RunError(*fault_); }

void CommsLoop::fail(std::string fault) {
  const std::lock_guard lock(mutex_);
  if (!fault_) fault_ = std::move(fault);
  changed_.notify_all();
}

void CommsLoop::run() {
  try {
    loop();
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void CommsLoop::loop() {
  Poller poller;
  const auto mail = poller.watch(mailbox_.wakeup());
  std::vector<Poller::Token> tokens;
  for (const auto& socket : sockets_) tokens.push_back(poller.watch(*socket));
  ParameterClient::Out out;
  client_.start(out);
  send(out);
  while (!ended_) {
    const bool release = client_.complete() && !client_.gradients_idle();
    poller.wait(monotonic_now() + (release ? kReleasePoll : Duration(std::chrono::seconds(1))));
    const Instant now = monotonic_now();
    for (std::uint32_t shard = 0; shard < sockets_.size(); ++shard)
      if (poller.ready(tokens[shard])) take_socket(shard, now, out);
    if (poller.ready(mail)) take_commands(out);
    send(out);
    publish(now);
  }
  for (auto& socket : sockets_) socket->close(Duration(0));
}

void CommsLoop::take_commands(ParameterClient::Out& out) {
  mailbox_.drain(commands_);
  ready_.clear();
  const auto push_ready = [&] {
    if (!ready_.empty()) client_.push(ready_, out);
    ready_.clear();
  };
  for (const Command& command : commands_) {
    if (command.kind == Command::Kind::ready) {
      ready_.push_back({command.slice, present_[command.slice.value]});
      continue;
    }
    push_ready();
    switch (command.kind) {
      case Command::Kind::begin:
        client_.begin(command.clock, command.samples);
        break;
      case Command::Kind::stop:
        client_.stop();
        break;
      case Command::Kind::finish:
        client_.finish(command.clock, command.group_stops, out);
        break;
      case Command::Kind::pull_final:
        client_.pull_final(out);
        break;
      default:
        ended_ = true;
    }
  }
  push_ready();
  last_progress_ = monotonic_now();
}

void CommsLoop::take_socket(std::uint32_t shard, Instant now, ParameterClient::Out& out) {
  DealerSocket& socket = *sockets_[shard];
  while (const auto event = socket.next_event(now)) {
    if (*event == ConnectionEvent::connected) {
      unconnected_since_[shard].reset();
      client_.reconnected(ShardId(shard), out);
      send(out);
    } else if (!unconnected_since_[shard]) {
      unconnected_since_[shard] = now;
    }
  }
  if (unconnected_since_[shard] && now - *unconnected_since_[shard] > connect_timeout_)
    throw RunError(fmt::format("shard {} at {} is unreachable for {:.1f} s: {}", shard, socket.peer().endpoint(),
                               to_seconds(connect_timeout_), why_unreachable(socket.peer(), std::chrono::seconds(1))));
  for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
    auto received = socket.receive();
    if (!received) return;
    last_progress_ = now;
    if (received->frames.empty()) continue;
    Frame header = std::move(received->frames.front());
    received->frames.erase(received->frames.begin());
    auto message = Incoming::parse(std::move(header), std::move(received->frames));
    if (!message)
      throw RunError(fmt::format("shard {} at {} sent what is no message: {}", shard, socket.peer().endpoint(),
                                 message.error().message));
    client_.receive(ShardId(shard), std::move(*message), out);
    if (client_.fault()) throw RunError(*client_.fault());
  }
}

// What cannot leave now is sent again on the next connection.
void CommsLoop::send(ParameterClient::Out& out) {
  for (auto& send : out.sends()) {
    DealerSocket& socket = *sockets_[send.to.value];
    if (socket.connected()) (void)socket.send(std::move(send.message));
  }
  out.clear();
}

void CommsLoop::publish(Instant now) {
  if (now - last_progress_ > kReminder) {
    last_progress_ = now;
    const std::string what = client_.waiting_for();
    if (!what.empty()) log::info("waiting for {}", what);
  }
  const std::lock_guard lock(mutex_);
  const bool complete = client_.complete() && client_.gradients_idle();
  const bool changed =
      complete != progress_.complete || client_.finished() != progress_.finished || client_.clock() != progress_.clock;
  progress_ = {complete, client_.finished(), client_.clock(), client_.waited_us(), client_.counters()};
  if (changed) changed_.notify_all();
}

}  // namespace parley

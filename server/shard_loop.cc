#include "server/shard_loop.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/address.h"
#include "common/transport/monotonic_clock.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace parley {
namespace {

constexpr Duration kIdle = std::chrono::seconds(1);
constexpr Duration kLinger = std::chrono::milliseconds(200);

}  // namespace

ShardLoop::ShardLoop(Context& context, std::unique_ptr<RouterSocket> socket, std::unique_ptr<Shard> shard, ShardId id,
                     const std::vector<std::string>& peers, bool verdicts,
                     std::function<void(const std::string&)> on_fault)
    : socket_(std::move(socket)),
      shard_(std::move(shard)),
      intake_(fmt::format("shard {}", id)),
      on_fault_(std::move(on_fault)) {
  for (std::uint32_t peer = 0; verdicts && peer < peers.size(); ++peer) {
    if (ShardId(peer) == id) continue;
    const auto address = read_address(peers[peer]);
    if (!address) throw RunError(fmt::format("shard address '{}': {}", peers[peer], address.error().message));
    peers_.push_back({ShardId(peer), std::make_unique<DealerSocket>(context, *address)});
  }
  thread_ = std::thread([this] { run(); });
}

ShardLoop::~ShardLoop() {
  ending_ = true;
  wakeup_.notify();
  thread_.join();
}

ShardCounters ShardLoop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void ShardLoop::run() {
  try {
    loop();
  } catch (const std::exception& error) {
    on_fault_(error.what());
  }
}

void ShardLoop::loop() {
  Poller poller;
  const auto wake = poller.watch(wakeup_);
  poller.watch(*socket_);
  for (Peer& peer : peers_) peer.token = poller.watch(*peer.socket);
  ShardOutbox out;
  while (!ending_) {
    poller.wait(monotonic_now() + kIdle);
    if (poller.ready(wake)) wakeup_.clear();
    const Instant now = monotonic_now();
    take_messages(now, out);
    take_peers(now, out);
    const std::lock_guard lock(mutex_);
    counters_ = shard_->counters();
  }
  socket_->close(kLinger);
}

void ShardLoop::take_messages(Instant now, ShardOutbox& out) {
  for (int turn = 0; turn < kMessagesPerTurn; ++turn) {
    auto received = socket_->receive();
    if (!received) return;
    const Route route = received->route;
    const std::string peer = received->peer;
    auto message = intake_.admit(std::move(*received), now);
    if (!message) continue;
    const std::uint64_t malformed = shard_->counters().malformed;
    shard_->receive(route, std::move(*message), now, out);
    if (shard_->counters().malformed != malformed) intake_.reject(route, peer, shard_->last_malformed(), now);
    send(out);
  }
}

void ShardLoop::take_peers(Instant now, ShardOutbox& out) {
  for (Peer& peer : peers_) {
    while (const auto event = peer.socket->next_event(now))
      if (*event == ConnectionEvent::connected) shard_->peer_connected(peer.id, out);
    while (peer.socket->receive()) {
      // A shard never answers a verdict; an Error from a peer of another version ends up here and its own log.
    }
  }
  send(out);
}

void ShardLoop::send(ShardOutbox& out) {
  // Unreachable: the connection is gone, and the worker's repeat fetches the answer.
  for (auto& send : out.replies.sends()) (void)socket_->send(send.to, std::move(send.message));
  out.replies.clear();
  for (auto& send : out.verdicts.sends())
    for (Peer& peer : peers_)
      if (peer.id == send.to && peer.socket->connected()) (void)peer.socket->send(std::move(send.message));
  out.verdicts.clear();
  if (out.fault) on_fault_(*std::exchange(out.fault, std::nullopt));
}

}  // namespace parley

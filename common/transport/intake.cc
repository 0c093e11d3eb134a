#include "common/transport/intake.h"

#include "common/base/log.h"
#include "common/wire/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace parley {
namespace {

constexpr Duration kWindow = std::chrono::minutes(1);
constexpr std::size_t kWarningsPerWindow = 20;

}  // namespace

std::optional<Incoming> Intake::admit(Received received, Instant now) {
  if (received.surplus_frames > 0) {
    reject(received.route, received.peer,
           fmt::format("{} frames, at most {} expected", received.frames.size() + received.surplus_frames,
                       limits::kFramesMax),
           now);
    return std::nullopt;
  }
  if (received.frames.empty()) {
    reject(received.route, received.peer, "no frame", now);
    return std::nullopt;
  }
  Frame header = std::move(received.frames.front());
  received.frames.erase(received.frames.begin());
  auto message = Incoming::parse(std::move(header), std::move(received.frames));
  if (message) return *std::move(message);
  reject(received.route, received.peer, message.error().message, now);
  return std::nullopt;
}

void Intake::reject(Route route, std::string_view peer, std::string_view why, Instant now) {
  ++malformed_;
  if (now >= window_end_) {
    window_end_ = now + kWindow;
    warned_.clear();
  }
  if (warned_.size() > kWarningsPerWindow || !warned_.insert(route).second) return;
  if (warned_.size() > kWarningsPerWindow) {
    log::warning("{}: more malformed messages are counted only, {} so far", where_, malformed_);
    return;
  }
  log::warning(
      "{}: dropped a malformed message from {}: {} (further ones of this connection are "
      "counted only)",
      where_, peer.empty() ? "the peer" : peer, why);
}

}  // namespace parley

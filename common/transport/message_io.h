// Frames in and out of a ZeroMQ socket; used by the sockets of this folder only. Nothing is copied that is worth the
// bookkeeping: a received frame owns its ZeroMQ message, a large frame that is sent is lent to ZeroMQ and released by
// its I/O thread when the bytes are out (so a frame's release must be safe and quick there: a decrement, a free).
#pragma once

#include "common/wire/message.h"
#include "common/wire/outbox.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley {

// A multipart message as it came, not yet looked at. Every frame's bytes begin at a multiple of 8, so that tables and
// floats in them can be read in place.
struct Received {
  Route route;       // ROUTER only: where it came from
  std::string peer;  // ROUTER only: the sender's IP address, for log lines
  std::vector<Frame> frames;
  // Frames beyond limits::kFramesMax, read and dropped.
  std::uint64_t surplus_frames = 0;
};

enum class SendResult {
  sent,        // taken by ZeroMQ; whether it arrives only an answer can tell
  unreachable  // there is no such connection (any more); the message is dropped
};

// Takes the next part of a message that is being read, or the first part of the next one (none waits: nullopt). `more`:
// whether parts follow. `peer`, where given, receives the sender's IP address; ask for it with a part that the peer
// sent: ZeroMQ 4.3 knows it for a ROUTER's routing id only where nobody polled before.
std::optional<Frame> receive_frame(void* socket, bool& more, std::string* peer = nullptr);
// Takes all further parts of the message whose last part had `more` set, each as a frame of `received`.
void receive_rest(void* socket, bool more, Received& received);
// Header and payload. `unreachable` where the socket has no connection to take the message, or lost it in the middle:
// then the peer sees nothing of it.
SendResult send_frames(void* socket, Outgoing message);

}  // namespace parley

#include "common/transport/message_io.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/wire/limits.h"

#include <fmt/format.h>
#include <zmq.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace parley {
namespace {

// Below this a copy costs less than the bookkeeping of a lent frame.
constexpr std::size_t kLentBytesMin = 4096;
constexpr std::size_t kAlignment = 8;

// A received ZeroMQ message on its way through our own threads.
struct Held {
  zmq_msg_t message;
};

// A frame on loan to ZeroMQ.
struct Lent {
  explicit Lent(Frame lent_frame) : frame(std::move(lent_frame)) { written.store(true, std::memory_order_release); }
  Frame frame;
  // Set by the sender, read by the I/O thread: makes what ZeroMQ orders by its own means visible to TSan as well.
  std::atomic<bool> written{false};
};

void release_lent(void* /*data*/, void* hint) {
  auto* lent = static_cast<Lent*>(hint);
  if (lent->written.load(std::memory_order_acquire)) delete lent;
}

void pack(Frame frame, zmq_msg_t& message) {
  const std::span<const std::byte> bytes = frame.bytes();
  int status = 0;
  if (bytes.size() < kLentBytesMin) {
    status = zmq_msg_init_size(&message, bytes.size());
    if (status == 0 && !bytes.empty()) std::memcpy(zmq_msg_data(&message), bytes.data(), bytes.size());
  } else {
    auto lent = std::make_unique<Lent>(std::move(frame));
    // ZeroMQ only reads; its interface predates const.
    status = zmq_msg_init_data(&message, const_cast<std::byte*>(bytes.data()), bytes.size(), release_lent, lent.get());
    if (status == 0) lent.release();
  }
  if (status != 0) throw RunError(fmt::format("cannot send {} bytes: out of memory", bytes.size()));
}

// Zero, or the error number; the frame is released either way.
int send_frame(void* socket, Frame frame, bool more) {
  zmq_msg_t message;
  pack(std::move(frame), message);
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  while (zmq_msg_send(&message, socket, flags) < 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    zmq_msg_close(&message);
    return error;
  }
  return 0;
}

}  // namespace

std::optional<Frame> receive_frame(void* socket, bool& more, std::string* peer) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  while (zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    zmq_msg_close(&message);
    if (error == EAGAIN) return std::nullopt;
    throw RunError(fmt::format("cannot receive: {}", zmq_strerror(error)));
  }
  more = zmq_msg_more(&message) != 0;
  if (peer != nullptr) {
    const char* address = zmq_msg_gets(&message, "Peer-Address");
    *peer = address != nullptr ? address : "unknown address";
  }
  auto* held = new Held;
  zmq_msg_init(&held->message);
  zmq_msg_move(&held->message, &message);
  zmq_msg_close(&message);
  const std::span bytes(static_cast<const std::byte*>(zmq_msg_data(&held->message)), zmq_msg_size(&held->message));
  Frame frame(
      bytes,
      [](void* context) {
        auto* done = static_cast<Held*>(context);
        zmq_msg_close(&done->message);
        delete done;
      },
      held);
  // Small frames lie anywhere in ZeroMQ's read buffer; large ones have memory of their own, which is aligned.
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) return Frame::copy(bytes);
  return frame;
}

void receive_rest(void* socket, bool more, Received& received) {
  while (more) {
    std::optional<Frame> frame = receive_frame(socket, more);
    PARLEY_CHECK(frame.has_value(), "ZeroMQ delivered part of a message");
    if (received.frames.size() < limits::kFramesMax)
      received.frames.push_back(*std::move(frame));
    else
      ++received.surplus_frames;
  }
}

SendResult send_frames(void* socket, Outgoing message) {
  PARLEY_CHECK(message.payload.size() < limits::kFramesMax, "{} frames", message.payload.size());
  bool whole = true;
  std::size_t left = message.payload.size();
  const auto send = [&](Frame frame) {
    PARLEY_CHECK(frame.size() <= limits::kFrameBytesMax, "frame of {} bytes", frame.size());
    const int error = send_frame(socket, std::move(frame), left > 0);
    if (error != 0 && error != EAGAIN) throw RunError(fmt::format("cannot send: {}", zmq_strerror(error)));
    whole = whole && error == 0;
  };
  send(std::move(message.header));
  if (!whole) return SendResult::unreachable;
  // A connection that ends in the middle: ZeroMQ withdraws the parts it has and swallows those up to the last, which
  // therefore have to be offered still.
  for (Frame& frame : message.payload) {
    --left;
    send(std::move(frame));
  }
  return whole ? SendResult::sent : SendResult::unreachable;
}

}  // namespace parley

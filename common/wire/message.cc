#include "common/wire/message.h"

#include "common/wire/limits.h"

#include <fmt/format.h>

#include <utility>

namespace parley {

std::string sender_name(const Header& header) { return fmt::format("{} {}", role_name(header.role), header.rank); }

Incoming::Incoming(Frame frame, std::vector<Frame> payload)
    : frame_(std::move(frame)), payload_(std::move(payload)), message_(wire::GetMessage(frame_.bytes().data())) {}

Result<Incoming> Incoming::parse(Frame header_frame, std::vector<Frame> payload) {
  const auto bytes = header_frame.bytes();
  if (bytes.size() < 8 || bytes.size() > limits::kFrameBytesMax)
    return failure(fmt::format("header frame of {} bytes", bytes.size()));
  if (payload.size() >= limits::kFramesMax) return failure(fmt::format("{} frames", payload.size() + 1));
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (!wire::MessageBufferHasIdentifier(data)) return failure("no magic 'PRLY' in the header frame");
  flatbuffers::Verifier verifier(data, bytes.size(), limits::kVerifierDepthMax, limits::kVerifierTablesMax);
  if (!wire::VerifyMessageBuffer(verifier)) return failure("header frame fails verification");
  Incoming message(std::move(header_frame), std::move(payload));
  const auto type = message.type();
  if (type == wire::Body::NONE || type > wire::Body::MAX)
    return failure(fmt::format("unknown body {}", static_cast<int>(type)));
  if (message.message_->role() > static_cast<std::uint8_t>(Role::worker))
    return failure(fmt::format("unknown role {}", message.message_->role()));
  return message;
}

Header Incoming::header() const {
  return {JobId(message_->job()),        Generation(message_->generation()),   static_cast<Role>(message_->role()),
          Rank(message_->rank()),        Incarnation(message_->incarnation()), Clock(message_->clock()),
          Sequence(message_->sequence())};
}

Outgoing compose_union(const Header& header, wire::BodyUnion body) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto packed = body.Pack(builder);
  builder.Finish(
      wire::CreateMessage(builder, limits::kProtocol, header.job.value, header.generation.value,
                          static_cast<std::uint8_t>(header.role), header.rank.value, header.incarnation.value,
                          header.clock.value, header.sequence.value, body.type, packed),
      wire::MessageIdentifier());
  auto* owned = new flatbuffers::DetachedBuffer(builder.Release());
  Outgoing message;
  message.header = Frame(
      {reinterpret_cast<const std::byte*>(owned->data()), owned->size()},
      [](void* context) { delete static_cast<flatbuffers::DetachedBuffer*>(context); }, owned);
  return message;
}

std::optional<Refusal> refuse(const Incoming& message, JobId job) {
  if (message.protocol() != limits::kProtocol)
    return Refusal{wire::Fault::protocol,
                   fmt::format("protocol version {} found, {} expected", message.protocol(), limits::kProtocol)};
  if (message.header().job != job)
    return Refusal{wire::Fault::refused,
                   fmt::format("belongs to job {:016x}, this is job {:016x}", message.header().job.value, job.value)};
  return std::nullopt;
}

Outgoing compose_error(const Header& header, wire::Fault fault, std::string text) {
  wire::ErrorT error;
  error.fault = fault;
  error.text = std::move(text);
  return compose(header, std::move(error));
}

}  // namespace parley

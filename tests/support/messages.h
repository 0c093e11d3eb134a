// Messages between machines in tests: what one machine sends, as another one receives it. Thread rule: pure functions.
#pragma once

#include "common/wire/message.h"
#include "common/wire/outbox.h"

#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace parley::test {

// The message as it arrives: every frame is a copy, so what is rewritten later does not show.
inline Incoming delivered(const Outgoing& message) {
  std::vector<Frame> payload;
  for (const Frame& frame : message.payload) payload.push_back(Frame::copy(frame.bytes()));
  auto parsed = Incoming::parse(Frame::copy(message.header.bytes()), std::move(payload));
  if (!parsed) throw std::runtime_error("does not parse: " + parsed.error().message);
  return std::move(*parsed);
}

inline wire::Body type_of(const Outgoing& message) {
  return wire::GetMessage(message.header.bytes().data())->body_type();
}

// The body as its plain struct: body_of<wire::Weights>(message).slices[0].version().
template <class Body>
typename Body::NativeTableType body_of(const Outgoing& message) {
  const auto* body = wire::GetMessage(message.header.bytes().data())->template body_as<Body>();
  if (body == nullptr) throw std::runtime_error(std::string("a ") + wire::EnumNameBody(type_of(message)));
  const std::unique_ptr<typename Body::NativeTableType> unpacked(body->UnPack());
  return std::move(*unpacked);
}

inline Header header_of(const Outgoing& message) { return delivered(message).header(); }

inline std::vector<float> floats(const Frame& frame) {
  std::vector<float> values(frame.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), frame.bytes().data(), values.size() * sizeof(float));
  return values;
}

inline Frame frame_of(std::span<const float> values) { return Frame::copy(std::as_bytes(values)); }

}  // namespace parley::test

// A message: one verified FlatBuffers header frame and raw payload frames.
//
// Incoming is what a machine receives: `parse` has verified the header frame, so fields are read in place. It says
// nothing about the payload beyond the frames' own sizes: who reads a frame checks its size against the entry.
// Outgoing is what a machine wants sent: `compose` packs the header frame; payload frames are appended in entry order.
#pragma once

#include "common/base/error.h"
#include "common/base/types.h"
#include "common/wire/frame.h"
#include "schemas/message_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parley {

struct Header {
  JobId job;
  Generation generation;
  Role role = Role::worker;
  Rank rank;
  Incarnation incarnation;
  Clock clock;
  Sequence sequence;
};

// "worker 3": for people.
std::string sender_name(const Header& header);

class Incoming {
 public:
  // Fails where the header frame is not a message of ours (magic, structure, an unknown body) or a limit is passed. A
  // message of another protocol version parses (protocol() tells), so that it can be answered.
  static Result<Incoming> parse(Frame header_frame, std::vector<Frame> payload);

  std::uint16_t protocol() const { return message_->protocol(); }
  Header header() const;
  wire::Body type() const { return message_->body_type(); }
  // The body as `T` (wire::PushPull ...); null where it is another one.
  template <class T>
  const T* body() const {
    return message_->body_as<T>();
  }
  std::vector<Frame>& payload() { return payload_; }
  const std::vector<Frame>& payload() const { return payload_; }

 private:
  Incoming(Frame frame, std::vector<Frame> payload);

  Frame frame_;
  std::vector<Frame> payload_;
  const wire::Message* message_;
};

struct Outgoing {
  Frame header;
  std::vector<Frame> payload;
};

// Packs `body` (a wire::...T object) under `header`. Header frames are small next to payload; one allocation each.
template <class BodyT>
Outgoing compose(const Header& header, BodyT body);

// Implementation of compose: takes the body as a union.
Outgoing compose_union(const Header& header, wire::BodyUnion body);

template <class BodyT>
Outgoing compose(const Header& header, BodyT body) {
  wire::BodyUnion packed;
  packed.Set(std::move(body));
  return compose_union(header, std::move(packed));
}

// What stands in the way of taking this message in this job, in one line; nothing where it may be read on.
struct Refusal {
  wire::Fault fault;
  std::string text;
};
std::optional<Refusal> refuse(const Incoming& message, JobId job);

// An Error message.
Outgoing compose_error(const Header& header, wire::Fault fault, std::string text);

}  // namespace parley

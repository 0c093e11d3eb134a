// A ParameterClient with its arenas, talking to shards that are played by the test. One thread, no network.
#pragma once

#include "common/layout/arena.h"
#include "common/layout/placement.h"
#include "tests/support/messages.h"
#include "worker/core/parameter_client.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace parley::test {

inline constexpr JobId kClientJob{5};

struct ClientSetup {
  // Three slices of 16 values: 'c', 'b' and 'a', in this order.
  std::vector<TensorSpec> tensors{{"a", {16}}, {"b", {16}}, {"c", {16}}};
  std::uint64_t slice_bytes = 64;
  std::uint32_t shards = 2;  // shard 0 owns slices 0 and 2, shard 1 slice 1
  bool gathers = true;
  std::uint64_t message_bytes_max = 1 << 20;
};

class ClientHarness {
 public:
  using Sent = std::vector<Addressed<ShardId>>;

  explicit ClientHarness(const ClientSetup& setup = {})
      : layout(setup.tensors, setup.slice_bytes),
        placement(layout, setup.shards),
        half0(layout.arena_count()),
        half1(layout.arena_count()),
        gradient_memory(layout.arena_count()),
        parameters(layout, half0.values(), half1.values()),
        gradients(layout, gradient_memory.values()),
        client({kClientJob, Generation(1), Rank(3), Incarnation(7), setup.gathers, setup.message_bytes_max}, layout,
               placement, parameters, gradients) {}

  // What the call wants sent.
  template <class Call>
  Sent sent(Call&& call) {
    ParameterClient::Out out;
    call(out);
    return std::move(out.sends());
  }
  Sent start() {
    return sent([&](auto& out) { client.start(out); });
  }
  Sent reconnected(std::uint32_t shard) {
    return sent([&](auto& out) { client.reconnected(ShardId(shard), out); });
  }
  Sent finish(std::uint64_t clock, bool group_stops = false) {
    return sent([&](auto& out) { client.finish(Clock(clock), group_stops, out); });
  }
  // Pushes these slices; all their tensors have a gradient.
  Sent push(const std::vector<std::uint32_t>& slices) {
    std::vector<std::vector<std::uint8_t>> present;
    for (const std::uint32_t slice : slices)
      present.emplace_back(layout.slice(SliceId(slice)).parts.size(), std::uint8_t{1});
    return push(slices, present);
  }
  Sent push(const std::vector<std::uint32_t>& slices, const std::vector<std::vector<std::uint8_t>>& present) {
    std::vector<ParameterClient::Ready> ready;
    for (std::size_t i = 0; i < slices.size(); ++i) ready.push_back({SliceId(slices[i]), present[i]});
    return sent([&](auto& out) { client.push(ready, out); });
  }

  // A shard says something.
  template <class Body>
  Sent receive(std::uint32_t shard, Body body, std::vector<Frame> payload = {}) {
    Outgoing message = compose(server_header, std::move(body));
    message.payload = std::move(payload);
    return sent([&](auto& out) { client.receive(ShardId(shard), delivered(message), out); });
  }
  Sent versions(std::uint32_t shard, std::uint64_t answers, const std::vector<wire::SliceVersion>& slices,
                bool ready = true) {
    wire::VersionsT body;
    body.answers = answers;
    body.ready = ready;
    body.slices = slices;
    return receive(shard, std::move(body));
  }
  Sent ack(std::uint32_t shard, std::uint64_t answers) {
    wire::AckT body;
    body.answers = answers;
    return receive(shard, std::move(body));
  }
  // Weights of one slice, every value the same.
  void answer(std::uint32_t slice, std::uint64_t answers, std::uint64_t version, float value, std::uint64_t lead = 0,
              std::uint64_t lag = 0, std::uint64_t waited_us = 0) {
    const std::vector<float> values(layout.slice(SliceId(slice)).count, value);
    wire::WeightsT body;
    body.slices.emplace_back(slice, answers, version, lead, lag, waited_us, values.size() * sizeof(float));
    std::vector<Frame> payload;
    payload.push_back(frame_of(values));
    receive(placement.owner(SliceId(slice)).value, std::move(body), std::move(payload));
  }
  // Answers every slice of these pulls or pushes with `version` and `value`.
  void answer_all(const Sent& messages, std::uint64_t version, float value) {
    for (const auto& message : messages)
      for (const std::uint32_t slice : slices_of(message.message)) answer(slice, sequence_of(message), version, value);
  }

  static std::vector<std::uint32_t> slices_of(const Outgoing& message) {
    std::vector<std::uint32_t> slices;
    if (type_of(message) == wire::Body::Pull)
      for (const auto& entry : body_of<wire::Pull>(message).slices) slices.push_back(entry.slice());
    if (type_of(message) == wire::Body::PushPull)
      for (const auto& entry : body_of<wire::PushPull>(message).slices) slices.push_back(entry.slice());
    return slices;
  }
  static std::uint64_t sequence_of(const Addressed<ShardId>& sent) { return header_of(sent.message).sequence.value; }

  // Through registration and first pull, to complete() at `clock` with every weight `value`.
  void resume(std::uint64_t clock = 0, float value = 0) {
    Sent pulls;
    for (const auto& ask : start()) {
      std::vector<wire::SliceVersion> slices;
      for (const SliceId slice : placement.slices(ask.to)) slices.emplace_back(slice.value, clock, clock);
      for (auto& pull : versions(ask.to.value, sequence_of(ask), slices)) pulls.push_back(std::move(pull));
    }
    answer_all(pulls, clock, value);
    if (layout.slice_count() > 0 && !client.complete()) throw std::runtime_error("not complete after the first pull");
  }
  float weight(std::uint64_t clock, std::uint32_t slice) const {
    return parameters.slice(SliceId(slice), Clock(clock))[0];
  }

  Header server_header{kClientJob, Generation(1), Role::server, Rank(0), Incarnation(1), Clock(), Sequence(1)};
  const Layout layout;
  const Placement placement;
  FloatBlock half0;
  FloatBlock half1;
  FloatBlock gradient_memory;
  const ParameterArena parameters;
  const GradientArena gradients;
  ParameterClient client;
};

}  // namespace parley::test

// A Shard with workers that talk to it by composed messages: what a worker sends can be delivered at once, late, twice
// or on another connection, and what comes out is read as plain values. One thread, no network.
#pragma once

#include "common/layout/placement.h"
#include "server/core/shard.h"
#include "tests/support/messages.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace parley::test {

inline constexpr JobId kJob{5};

// One life of one worker.
struct Sender {
  Rank rank;
  Incarnation incarnation{1};
  Route route;
  std::uint64_t sequence = 0;

  Header header(Clock clock = Clock()) {
    return {kJob, Generation(1), Role::worker, rank, incarnation, clock, Sequence(++sequence)};
  }
};

// One entry of a Weights message.
struct Answer {
  Route route;
  std::uint32_t slice = 0;
  std::uint64_t answers = 0;
  std::uint64_t version = 0;
  std::uint64_t lead = 0;
  std::uint64_t lag = 0;
  std::uint64_t waited_us = 0;
  float value = 0;  // the first one
};

struct ShardSetup {
  std::uint32_t workers = 2;
  SyncPolicy sync;
  double clip_norm = 0;
  bool skip_non_finite = false;
  std::uint32_t shards = 1;
  ShardId id;
  // Two slices of 16 values: 'b' fills the first one, 'a' has two values in the second.
  std::vector<TensorSpec> tensors{{"a", {2}}, {"b", {16}}};
  std::uint64_t slice_bytes = 64;
  // SGD with rate 1 at every clock.
  StoreOptions store{.schedule = {.base_rate = 1}};
};

class ShardHarness {
 public:
  explicit ShardHarness(const ShardSetup& setup = {})
      : layout(setup.tensors, setup.slice_bytes),
        placement(layout, setup.shards),
        shard(
            {
                .id = setup.id,
                .job = kJob,
                .generation = Generation(1),
                .server = Rank(0),
                .incarnation = Incarnation(1),
                .workers = setup.workers,
                .sync = setup.sync,
                .clip_norm = setup.clip_norm,
                .skip_non_finite = setup.skip_non_finite,
            },
            setup.store, layout, placement) {
    for (std::uint32_t rank = 0; rank < setup.workers; ++rank)
      workers.push_back({Rank(rank), Incarnation(1), Route(100 + rank)});
  }

  Sender& worker(std::uint32_t rank) { return workers[rank]; }

  void deliver(Route route, const Outgoing& message) { shard.receive(route, delivered(message), now, out); }
  void deliver(const Sender& from, const Outgoing& message) { deliver(from.route, message); }
  template <class Body>
  void send(Sender& from, Body body, Clock clock = Clock()) {
    deliver(from, compose(from.header(clock), std::move(body)));
  }

  // A push of one slice, every value the same.
  Outgoing make_push(Sender& from, std::uint64_t clock, float value, std::uint32_t slice = 0, std::uint64_t samples = 1,
                     std::uint64_t base_version = 0) {
    wire::PushPullT body;
    body.samples = samples;
    const std::vector<float> values(layout.slice(SliceId(slice)).count, value);
    body.slices = {{slice, wire::Presence::all, base_version, values.size() * sizeof(float)}};
    Outgoing message = compose(from.header(Clock(clock)), std::move(body));
    message.payload.push_back(frame_of(values));
    return message;
  }
  // Pushes and returns the sequence that an answer has to name.
  std::uint64_t push(Sender& from, std::uint64_t clock, float value, std::uint32_t slice = 0, std::uint64_t samples = 1,
                     std::uint64_t base_version = 0) {
    deliver(from, make_push(from, clock, value, slice, samples, base_version));
    return from.sequence;
  }
  // A push that says that no tensor had a gradient.
  std::uint64_t push_nothing(Sender& from, std::uint64_t clock, std::uint32_t slice = 0, std::uint64_t samples = 1) {
    wire::PushPullT body;
    body.samples = samples;
    body.slices = {{slice, wire::Presence::none, 0, 0}};
    Outgoing message = compose(from.header(Clock(clock)), std::move(body));
    message.payload.emplace_back();
    deliver(from, message);
    return from.sequence;
  }
  Outgoing make_initialize(Sender& from, const std::vector<SliceId>& slices, float value) {
    wire::InitializeT body;
    std::vector<Frame> payload;
    for (const SliceId slice : slices) {
      const std::vector<float> values(layout.slice(slice).count, value);
      body.slices.emplace_back(slice.value, values.size() * sizeof(float));
      payload.push_back(frame_of(values));
    }
    Outgoing message = compose(from.header(), std::move(body));
    message.payload = std::move(payload);
    return message;
  }
  // First values of all slices, from worker 0.
  void initialize(float value = 0) {
    const auto slices = shard.slices();
    deliver(worker(0), make_initialize(worker(0), {slices.begin(), slices.end()}, value));
    out.replies.clear();
  }
  void finish(Sender& from, std::uint64_t clock, bool group_stops = false) {
    wire::FinishedT body;
    body.group_stops = group_stops;
    send(from, std::move(body), Clock(clock));
  }

  // The weights that were answered since the last call; other answers are left out.
  std::vector<Answer> answers() {
    std::vector<Answer> found;
    for (const auto& sent : out.replies.sends()) {
      if (type_of(sent.message) != wire::Body::Weights) continue;
      const auto body = body_of<wire::Weights>(sent.message);
      for (std::size_t i = 0; i < body.slices.size(); ++i) {
        const wire::SliceWeights& entry = body.slices[i];
        found.push_back({sent.to, entry.slice(), entry.answers(), entry.version(), entry.lead(), entry.lag(),
                         entry.waited_us(), floats(sent.message.payload.at(i)).at(0)});
      }
    }
    out.replies.clear();
    return found;
  }
  // The only message that was sent to workers since the last call.
  Addressed<Route> only_reply() {
    if (out.replies.sends().size() != 1)
      throw std::runtime_error(std::to_string(out.replies.sends().size()) + " replies instead of one");
    auto reply = std::move(out.replies.sends()[0]);
    out.replies.clear();
    return reply;
  }
  float value(std::uint32_t slice = 0) const { return shard.store().values(SliceId(slice))[0]; }
  std::uint64_t version(std::uint32_t slice = 0) const { return shard.store().version(SliceId(slice)).value; }

  const Layout layout;
  const Placement placement;
  Shard shard;
  ShardOutbox out;
  Instant now{std::chrono::seconds(10)};
  std::deque<Sender> workers;
};

}  // namespace parley::test

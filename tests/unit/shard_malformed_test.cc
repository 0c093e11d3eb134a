// What no honest worker sends: Shard counts it, says what it was, changes nothing and goes on.
#include "common/base/random.h"
#include "tests/support/shard_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace parley {
namespace {

using test::body_of;
using test::Sender;
using test::ShardHarness;

struct Part {
  std::uint32_t slice = 0;
  wire::Presence presence = wire::Presence::all;
  std::size_t bytes = 64;
};

// A push of several slices with frames of any size.
Outgoing push_of(Sender& from, std::uint64_t clock, const std::vector<Part>& parts,
                 std::vector<std::uint8_t> present = {}) {
  wire::PushPullT body;
  body.samples = 1;
  body.present = std::move(present);
  std::vector<Frame> payload;
  for (const Part& part : parts) {
    body.slices.emplace_back(part.slice, part.presence, 0, part.bytes);
    payload.push_back(Frame::copy(std::vector<std::byte>(part.bytes, std::byte{0x40})));
  }
  Outgoing message = compose(from.header(Clock(clock)), std::move(body));
  message.payload = std::move(payload);
  return message;
}

class ShardMalformedTest : public testing::Test {
 protected:
  ShardMalformedTest() { h.initialize(1); }

  // What the shard says about a message that it must not take; then shows that a whole clock works as if it had not
  // come.
  std::string refused(const Outgoing& message) {
    const std::uint64_t before = h.shard.counters().malformed;
    h.deliver(h.worker(0), message);
    EXPECT_EQ(h.shard.counters().malformed, before + 1);
    EXPECT_TRUE(h.out.replies.empty());
    EXPECT_EQ(h.shard.counters().pushes, 4 * clock);
    const float value = h.value();
    EXPECT_EQ(h.version(), clock);
    for (std::uint32_t slice = 0; slice < 2; ++slice)
      for (std::uint32_t rank = 0; rank < 2; ++rank) h.push(h.worker(rank), clock, 1, slice);
    EXPECT_EQ(h.answers().size(), 4U);
    EXPECT_EQ(h.value(), value - 1);
    ++clock;
    return h.shard.last_malformed();
  }

  ShardHarness h;
  std::uint64_t clock = 0;
};

TEST_F(ShardMalformedTest, pushes) {
  Sender& from = h.worker(0);
  const Part good{};
  const Part other_good{.slice = 1};
  EXPECT_EQ(refused(push_of(from, 1, {good, other_good})), "worker 0: PushPull: clock 1 of slice 0, 0 expected");
  EXPECT_EQ(refused(push_of(from, clock, {{.bytes = 60}})), "worker 0: PushPull: slice 0 has 60 bytes, 64 expected");
  EXPECT_EQ(refused(push_of(from, clock, {{.bytes = 0}})), "worker 0: PushPull: slice 0 has 0 bytes, 64 expected");
  EXPECT_EQ(refused(push_of(from, clock, {{.presence = wire::Presence::none}})),
            "worker 0: PushPull: slice 0 has 64 bytes, 0 expected");
  EXPECT_EQ(refused(push_of(from, clock, {good, {.slice = 2}})), "worker 0: PushPull: slice 2 is not ours");
  EXPECT_EQ(refused(push_of(from, clock, {good, {.slice = 4'000'000'000}})),
            "worker 0: PushPull: slice 4000000000 is not ours");
  EXPECT_EQ(refused(push_of(from, clock, {good, {.slice = 1, .presence = wire::Presence::some}})),
            "worker 0: PushPull: presence bytes are missing");
  EXPECT_EQ(refused(push_of(
                from, clock,
                {{.slice = 0, .presence = wire::Presence::some}, {.slice = 1, .presence = wire::Presence::some}}, {1})),
            "worker 0: PushPull: presence bytes are missing");
  Outgoing message = push_of(from, clock, {good, other_good});
  message.payload.pop_back();
  EXPECT_EQ(refused(message), "worker 0: PushPull: a frame a slice expected, after Initialize");
  message = push_of(from, clock, {good});
  message.payload.emplace_back();
  EXPECT_EQ(refused(message), "worker 0: PushPull: a frame a slice expected, after Initialize");
}

TEST_F(ShardMalformedTest, a_message_is_taken_whole_or_not_at_all) {
  h.deliver(h.worker(0), push_of(h.worker(0), 0, {{.slice = 0}, {.slice = 1, .bytes = 4}}));
  h.push(h.worker(1), 0, 1, 0);
  EXPECT_EQ(h.version(0), 0U) << "worker 0's first slice did not count either";
}

TEST_F(ShardMalformedTest, a_slice_of_another_shard) {
  ShardHarness second({.workers = 1, .shards = 2, .id = ShardId(1)});
  second.initialize();
  ASSERT_EQ(second.shard.slices().size(), 1U);
  ASSERT_EQ(second.shard.slices()[0], SliceId(1));
  second.push(second.worker(0), 0, 1, 0);
  EXPECT_EQ(second.shard.last_malformed(), "worker 0: PushPull: slice 0 is not ours");
  second.push(second.worker(0), 0, 1, 1);
  EXPECT_EQ(second.answers().size(), 1U);
}

TEST_F(ShardMalformedTest, other_messages) {
  Sender& from = h.worker(0);
  wire::PullT pull;
  pull.slices = {{2, 0}};
  EXPECT_EQ(refused(compose(from.header(), std::move(pull))), "worker 0: Pull: slice 2 is not ours or has no values");
}

TEST_F(ShardMalformedTest, messages_that_a_shard_never_gets) {
  Sender& from = h.worker(0);
  EXPECT_EQ(refused(compose(from.header(), wire::WeightsT())), "worker 0: unexpected Weights");
  EXPECT_EQ(refused(compose(from.header(), wire::HeartbeatT())), "worker 0: unexpected Heartbeat");
  Header header = from.header();
  header.rank = Rank(2);
  EXPECT_EQ(refused(compose(header, wire::AskT())), "worker 2: not a worker of this job");
  header.rank = Rank(0);
  header.role = Role::server;
  EXPECT_EQ(refused(compose(header, wire::AskT())), "server 0: not a worker of this job");
}

TEST(ShardMalformed, first_values) {
  ShardHarness h;
  Sender& from = h.worker(0);
  h.deliver(from, push_of(from, 0, {{.slice = 0}}));
  EXPECT_EQ(h.shard.last_malformed(), "worker 0: PushPull: a frame a slice expected, after Initialize");
  wire::PullT pull;
  pull.slices = {{0, 0}};
  h.send(from, std::move(pull));
  EXPECT_EQ(h.shard.last_malformed(), "worker 0: Pull: slice 0 is not ours or has no values");

  Outgoing message = h.make_initialize(from, {SliceId(0), SliceId(1)}, 3);
  message.payload.pop_back();
  h.deliver(from, message);
  EXPECT_EQ(h.shard.last_malformed(), "worker 0: Initialize: a frame a slice expected");
  message = h.make_initialize(from, {SliceId(0), SliceId(1)}, 3);
  message.payload[1] = Frame::copy(std::vector<std::byte>(60));
  h.deliver(from, message);
  EXPECT_EQ(h.shard.last_malformed(), "worker 0: Initialize: a slice of another shard or size");
  wire::InitializeT foreign;
  foreign.slices.emplace_back(9, 64);
  message = compose(from.header(), std::move(foreign));
  message.payload.push_back(Frame::copy(std::vector<std::byte>(64)));
  h.deliver(from, message);
  EXPECT_EQ(h.shard.counters().malformed, 5U);
  EXPECT_FALSE(h.shard.ready());
  EXPECT_FALSE(h.shard.store().initialized(SliceId(0))) << "not even the slice that was right";
  EXPECT_TRUE(h.out.replies.empty());
}

TEST_F(ShardMalformedTest, another_job_or_protocol_is_answered_and_another_generation_dropped) {
  Header header = h.worker(0).header();
  header.job = JobId(6);
  h.deliver(Route(3), compose(header, wire::AskT()));
  const auto reply = h.only_reply();
  EXPECT_EQ(reply.to, Route(3));
  EXPECT_EQ(body_of<wire::Error>(reply.message).fault, wire::Fault::refused);
  EXPECT_EQ(body_of<wire::Error>(reply.message).text, "belongs to job 0000000000000006, this is job 0000000000000005");

  for (const std::uint64_t generation : {0U, 2U}) {
    header = h.worker(0).header();
    header.generation = Generation(generation);
    h.deliver(Route(3), compose(header, wire::AskT()));
  }
  EXPECT_TRUE(h.out.replies.empty());
  EXPECT_EQ(h.shard.counters().late, 2U);
}

// ZeroMQ hands out small messages at any address.
TEST_F(ShardMalformedTest, a_payload_at_an_odd_address_is_read) {
  const std::vector<float> gradient(16, 2.0F);
  std::vector<std::byte> memory(65);
  std::memcpy(memory.data() + 1, gradient.data(), 64);
  Outgoing message = h.make_push(h.worker(0), 0, 0);
  std::vector<Frame> payload;
  payload.emplace_back(std::span(memory).subspan(1), nullptr, nullptr);
  auto incoming = Incoming::parse(std::move(message.header), std::move(payload));
  ASSERT_TRUE(incoming.has_value());
  h.shard.receive(h.worker(0).route, std::move(*incoming), h.now, h.out);
  h.push(h.worker(1), 0, 4);
  EXPECT_EQ(h.value(), -2.0F);
}

// Anything that still parses after its bytes were changed is taken or refused, never more.
TEST_F(ShardMalformedTest, changed_bytes_never_crash_a_shard) {
  RandomStream random(4, 1);
  for (int round = 0; round < 5000; ++round) {
    Outgoing message;
    switch (random.below(4)) {
      case 0:
        message =
            push_of(h.worker(0), random.below(3), {{.slice = 0}, {.slice = 1, .presence = wire::Presence::some}}, {1});
        break;
      case 1:
        message = h.make_initialize(h.worker(0), {SliceId(0), SliceId(1)}, 1);
        break;
      case 2:
        message = compose(h.worker(1).header(), wire::AskT());
        break;
      default: {
        wire::PullT pull;
        pull.slices = {{0, 0}, {1, 0}};
        message = compose(h.worker(1).header(), std::move(pull));
      }
    }
    std::vector<std::byte> bytes(message.header.bytes().begin(), message.header.bytes().end());
    for (std::uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      bytes[random.below(bytes.size())] ^= std::byte{static_cast<unsigned char>(1 + random.below(255))};
    auto incoming = Incoming::parse(Frame::copy(bytes), std::move(message.payload));
    if (incoming) h.shard.receive(Route(1), std::move(*incoming), h.now, h.out);
    h.out.replies.clear();
    h.out.verdicts.clear();
  }
  EXPECT_GT(h.shard.counters().malformed, 20U);
}

}  // namespace
}  // namespace parley

#include "common/wire/message.h"

#include "common/base/random.h"
#include "common/control/registration.h"
#include "common/wire/limits.h"
#include "tests/support/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::HasSubstr;

Header sample_header() {
  return {JobId(0x1234567890abcdef), Generation(3), Role::worker, Rank(5), Incarnation(7),
          Clock(1ULL << 40),         Sequence(99)};
}

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Outgoing& message) {
  const auto bytes = message.header.bytes();
  return {bytes.begin(), bytes.end()};
}

Result<Incoming> parse(const Bytes& bytes, std::size_t frames = 0) {
  std::vector<Frame> payload(frames);
  return Incoming::parse(Frame::copy(bytes), std::move(payload));
}

wire::PushPullT sample_push() {
  wire::PushPullT body;
  body.samples = 64;
  body.slices = {
      {0, wire::Presence::all, 12, 4096}, {3, wire::Presence::some, 13, 64}, {4, wire::Presence::none, 13, 0}};
  body.present = {1, 0, 1};
  return body;
}

// A message of every kind, with something in every field.
std::vector<Outgoing> samples() {
  const Header header = sample_header();
  const std::vector<TensorSpec> tensors{
      {"weight", {2, 3}}, {"", {}}, {"running", {7}, ElementType::float32, TensorKind::buffer, 2}};
  std::vector<Outgoing> all;
  wire::RegisterT registration;
  registration.has_rank = true;
  registration.host = "node";
  registration.life = 8;
  registration.endpoints = {"tcp://a:1", "tcp://b:2"};
  registration.layout = pack_layout(tensors, 64, 11);
  registration.config = pack_entries({{"train.seed", "1"}});
  all.push_back(compose(header, std::move(registration)));
  wire::WelcomeT welcome;
  welcome.rank = 2;
  welcome.incarnation = 9;
  all.push_back(compose(header, std::move(welcome)));
  wire::MembershipT membership;
  membership.phase = wire::Phase::running;
  membership.members.push_back(std::make_unique<wire::MemberStateT>());
  membership.shards = {"tcp://a:1"};
  membership.layout = pack_layout(tensors, 64, 11);
  all.push_back(compose(header, std::move(membership)));
  wire::ShutdownT shutdown;
  shutdown.reason = "over";
  shutdown.processes.push_back(std::make_unique<wire::ProcessStatsT>());
  shutdown.processes.back()->stats = pack_stats({{"seconds", 1.5}});
  all.push_back(compose(header, std::move(shutdown)));
  wire::StoreValueT value;
  value.key = "root";
  value.value = {1, 2, 3};
  all.push_back(compose(header, std::move(value)));
  all.push_back(compose_error(header, wire::Fault::non_finite, "text"));
  wire::VersionsT versions;
  versions.ready = true;
  versions.slices = {{0, 4, 4}, {1, 5, 5}};
  all.push_back(compose(header, std::move(versions)));
  all.push_back(compose(header, sample_push()));
  wire::WeightsT weights;
  weights.slices = {{1, 2, 3, 4, 5, 6, 7}};
  all.push_back(compose(header, std::move(weights)));
  wire::VerdictT verdict;
  verdict.slices = {{0, 1.25}, {5, INFINITY}};
  all.push_back(compose(header, std::move(verdict)));
  all.push_back(compose(header, wire::HeartbeatT()));
  return all;
}

TEST(Message, header_and_body_arrive_as_they_were_sent) {
  Outgoing sent = compose(sample_header(), sample_push());
  sent.payload.push_back(Frame::copy(Bytes(4096)));
  const Incoming message = test::delivered(sent);
  const Header header = message.header();
  EXPECT_EQ(header.job, sample_header().job);
  EXPECT_EQ(header.generation, Generation(3));
  EXPECT_EQ(header.role, Role::worker);
  EXPECT_EQ(header.rank, Rank(5));
  EXPECT_EQ(header.incarnation, Incarnation(7));
  EXPECT_EQ(header.clock, Clock(1ULL << 40));
  EXPECT_EQ(header.sequence, Sequence(99));
  EXPECT_EQ(sender_name(header), "worker 5");
  EXPECT_EQ(message.protocol(), limits::kProtocol);
  EXPECT_EQ(message.type(), wire::Body::PushPull);
  EXPECT_EQ(message.body<wire::Weights>(), nullptr) << "a body is read as what it is";
  const auto* push = message.body<wire::PushPull>();
  ASSERT_NE(push, nullptr);
  EXPECT_EQ(push->samples(), 64U);
  ASSERT_EQ(push->slices()->size(), 3U);
  EXPECT_EQ(push->slices()->Get(1)->slice(), 3U);
  EXPECT_EQ(push->slices()->Get(1)->presence(), wire::Presence::some);
  EXPECT_EQ(push->slices()->Get(1)->base_version(), 13U);
  EXPECT_EQ(push->slices()->Get(0)->bytes(), 4096U);
  EXPECT_EQ(push->present()->size(), 3U);
  ASSERT_EQ(message.payload().size(), 1U);
  EXPECT_EQ(message.payload()[0].size(), 4096U);
}

TEST(Message, every_kind_survives_reading_and_packing_again) {
  for (const Outgoing& sent : samples()) {
    const Bytes bytes = bytes_of(sent);
    ASSERT_TRUE(parse(bytes).has_value());
    const std::unique_ptr<wire::MessageT> read(wire::GetMessage(bytes.data())->UnPack());
    EXPECT_EQ(bytes_of(compose_union(sample_header(), std::move(read->body))), bytes)
        << wire::EnumNameBody(test::type_of(sent));
  }
}

// Trailing padding may be missing, nothing else.
TEST(Message, a_cut_header_frame_is_refused) {
  for (const Outgoing& sent : samples()) {
    const Bytes bytes = bytes_of(sent);
    for (std::size_t length = 0; length + 8 < bytes.size(); ++length)
      ASSERT_FALSE(parse(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))).has_value())
          << wire::EnumNameBody(test::type_of(sent)) << " cut to " << length;
  }
}

// What parses can be read from end to end; run under a sanitizer this also shows reads outside the frame.
TEST(Message, flipped_bytes_are_refused_or_can_be_read) {
  RandomStream random(11, 1);
  const auto originals = samples();
  std::size_t refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    Bytes bytes = bytes_of(originals[random.below(originals.size())]);
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips)
      bytes[random.below(bytes.size())] ^= std::byte{static_cast<unsigned char>(1 + random.below(255))};
    const auto message = parse(bytes);
    if (!message) {
      EXPECT_FALSE(message.error().message.empty());
      ++refused;
      continue;
    }
    (void)sender_name(message->header());
    (void)refuse(*message, JobId(1));
    const std::unique_ptr<wire::MessageT> read(wire::GetMessage(bytes.data())->UnPack());
    EXPECT_NE(read->body.type, wire::Body::NONE);
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_LT(refused, 9900U);
}

std::string refusal(const Bytes& bytes, std::size_t frames = 0) {
  const auto message = parse(bytes, frames);
  return message ? "accepted" : message.error().message;
}

TEST(Message, what_is_not_ours_is_refused_with_a_reason) {
  Bytes bytes = bytes_of(compose(sample_header(), wire::AskT()));
  EXPECT_EQ(refusal(bytes), "accepted");
  EXPECT_EQ(refusal(bytes, limits::kFramesMax), "65537 frames");
  EXPECT_EQ(refusal({}), "header frame of 0 bytes");
  EXPECT_EQ(refusal(Bytes(1000)), "no magic 'PRLY' in the header frame");
  bytes[4] = std::byte{'X'};
  EXPECT_EQ(refusal(bytes), "no magic 'PRLY' in the header frame");

  flatbuffers::FlatBufferBuilder builder;
  auto finish = [&](std::uint8_t role, wire::Body type) {
    builder.Clear();
    const auto body = wire::CreateAsk(builder).Union();
    builder.Finish(wire::CreateMessage(builder, limits::kProtocol, 1, 1, role, 0, 1, 0, 1, type, body),
                   wire::MessageIdentifier());
    const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
    return Bytes(data, data + builder.GetSize());
  };
  EXPECT_EQ(refusal(finish(1, wire::Body::Ask)), "accepted");
  EXPECT_EQ(refusal(finish(2, wire::Body::Ask)), "unknown role 2");
  EXPECT_EQ(refusal(finish(1, static_cast<wire::Body>(99))), "unknown body 99");
}

TEST(Message, another_protocol_version_parses_and_is_told_so) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = wire::CreateAsk(builder).Union();
  builder.Finish(wire::CreateMessage(builder, 41, 5, 0, 0, 0, 0, 0, 0, wire::Body::Ask, body),
                 wire::MessageIdentifier());
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  const auto message = parse(Bytes(data, data + builder.GetSize()));
  ASSERT_TRUE(message.has_value());
  const auto reason = refuse(*message, JobId(5));
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->fault, wire::Fault::protocol);
  EXPECT_EQ(reason->text, "protocol version 41 found, 1 expected");
}

TEST(Message, another_job_is_refused) {
  const Incoming message = test::delivered(compose(sample_header(), wire::AskT()));
  EXPECT_FALSE(refuse(message, sample_header().job).has_value());
  const auto reason = refuse(message, JobId(2));
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->fault, wire::Fault::refused);
  EXPECT_EQ(reason->text, "belongs to job 1234567890abcdef, this is job 0000000000000002");
}

// The verifier's default of a million tables must not stand in the way of an honest model.
TEST(Message, a_registration_of_many_tensors_and_keys_is_verified) {
  wire::RegisterT body;
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 20'000; ++i)
    tensors.push_back({fmt::format("decoder.layers.{}.attention.weight", i), {1024, 1024}});
  body.layout = pack_layout(tensors, 1 << 20, 1);
  for (int i = 0; i < 1'000'000; ++i) {
    auto entry = std::make_unique<wire::EntryT>();
    entry->key = "k";
    entry->value = "v";
    body.config.push_back(std::move(entry));
  }
  const Outgoing sent = compose(sample_header(), std::move(body));
  const auto message = parse(bytes_of(sent));
  ASSERT_TRUE(message.has_value()) << message.error().message;
  EXPECT_EQ(message->body<wire::Register>()->layout()->tensors()->size(), 20'000U);
}

}  // namespace
}  // namespace parley

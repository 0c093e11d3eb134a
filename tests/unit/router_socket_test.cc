#include "common/transport/router_socket.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/dealer_socket.h"
#include "common/transport/event_loop.h"
#include "common/transport/intake.h"
#include "common/transport/monotonic_clock.h"
#include "common/wire/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.h>

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace parley {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr Duration kPatience = 30s;

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + seed) % 251);
  return bytes;
}

Frame text_frame(std::string_view text) { return Frame::copy(std::as_bytes(std::span(text.data(), text.size()))); }

std::string text_of(const Frame& frame) { return {reinterpret_cast<const char*>(frame.bytes().data()), frame.size()}; }

Outgoing text_message(std::string_view text) { return {text_frame(text), {}}; }

Outgoing heartbeat(std::uint64_t sequence) {
  Header header;
  header.sequence = Sequence(sequence);
  return compose(header, wire::HeartbeatT());
}

// One router and one dealer on one thread.
class Pair : public testing::Test {
 protected:
  void connect() {
    dealer_ = std::make_unique<DealerSocket>(context_, bound_);
    poller_.watch(router_);
    poller_.watch(*dealer_);
    ASSERT_TRUE(turn_until([&] { return dealer_->connected(); }));
  }

  // Serves events until `done`; false where that takes too long.
  bool turn_until(const std::function<bool()>& done) {
    const Instant limit = monotonic_now() + kPatience;
    while (!done()) {
      if (monotonic_now() >= limit) return false;
      poller_.wait(std::min(limit, monotonic_now() + 5ms));
      while (dealer_ && dealer_->next_event(monotonic_now())) {
      }
    }
    return true;
  }

  Received next(auto& socket) {
    std::optional<Received> received;
    EXPECT_TRUE(turn_until([&] { return (received = socket.receive()).has_value(); }));
    return received ? *std::move(received) : Received{};
  }

  Context context_;
  RouterSocket router_{context_};
  const Address bound_ = router_.bind({"127.0.0.1", 0});
  std::unique_ptr<DealerSocket> dealer_;
  Poller poller_;
};

TEST_F(Pair, CarriesFramesOfEverySizeBothWays) {
  connect();
  const std::vector<std::size_t> sizes = {0, 1, 7, 33, 34, 4095, 4096, 8191, 8192, 70'001, 3 << 20};
  Outgoing push = text_message("push");
  for (const std::size_t size : sizes) push.payload.push_back(Frame::copy(pattern(size, 1)));
  ASSERT_EQ(dealer_->send(std::move(push)), SendResult::sent);

  const Received received = next(router_);
  ASSERT_EQ(received.frames.size(), sizes.size() + 1);
  EXPECT_EQ(received.peer, "127.0.0.1");
  EXPECT_EQ(text_of(received.frames[0]), "push");
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(received.frames[i + 1].bytes(), pattern(sizes[i], 1)));

  Outgoing reply = text_message("weights");
  for (const std::size_t size : sizes) reply.payload.push_back(Frame::copy(pattern(size, 2)));
  ASSERT_EQ(router_.send(received.route, std::move(reply)), SendResult::sent);
  const Received answer = next(*dealer_);
  ASSERT_EQ(answer.frames.size(), sizes.size() + 1);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(answer.frames[i + 1].bytes(), pattern(sizes[i], 2)));
}

TEST_F(Pair, GivesEveryFrameAnAlignedPlace) {
  connect();
  for (std::size_t size = 1; size < 400; ++size) {
    Outgoing message = text_message("odd");
    message.payload.push_back(Frame::copy(pattern(size, 3)));
    message.payload.push_back(Frame::copy(pattern(size * 7, 3)));
    ASSERT_EQ(dealer_->send(std::move(message)), SendResult::sent);
  }
  for (std::size_t size = 1; size < 400; ++size) {
    const Received received = next(router_);
    for (const Frame& frame : received.frames)
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(frame.bytes().data()) % 8, 0u);
    ASSERT_TRUE(std::ranges::equal(received.frames.at(1).bytes(), pattern(size, 3)));
  }
}

TEST_F(Pair, LendsLargeFramesAndGetsThemBack) {
  connect();
  const std::vector<std::byte> gradient = pattern(1 << 20, 4);
  Lease lease;
  for (int step = 0; step < 20; ++step) {
    Outgoing message = text_message("push");
    for (int slice = 0; slice < 4; ++slice) message.payload.push_back(Frame::borrow(gradient, lease));
    ASSERT_EQ(dealer_->send(std::move(message)), SendResult::sent);
    const Received received = next(router_);
    ASSERT_EQ(received.frames.size(), 5u);
    ASSERT_TRUE(std::ranges::equal(received.frames[4].bytes(), gradient));
  }
  EXPECT_TRUE(turn_until([&] { return lease.idle(); }));
}

TEST_F(Pair, ReleasesACopiedFrameAtOnce) {
  connect();
  const std::vector<std::byte> small(100);
  Lease lease;
  Outgoing message = text_message("push");
  message.payload.push_back(Frame::borrow(small, lease));
  ASSERT_EQ(dealer_->send(std::move(message)), SendResult::sent);
  EXPECT_TRUE(lease.idle());
}

TEST_F(Pair, ReportsConnectionsThatAreGone) {
  connect();
  ASSERT_EQ(dealer_->send(text_message("hello")), SendResult::sent);
  const Route route = next(router_).route;
  dealer_.reset();
  poller_ = Poller();
  const std::vector<std::byte> weights = pattern(1 << 16, 5);
  Lease lease;
  EXPECT_TRUE(turn_until([&] {
    Outgoing reply = text_message("weights");
    reply.payload.push_back(Frame::borrow(weights, lease));
    return router_.send(route, std::move(reply)) == SendResult::unreachable;
  }));
  EXPECT_TRUE(turn_until([&] {
    while (router_.receive()) {
    }
    return lease.idle();
  }));
}

TEST_F(Pair, ReportsConnectionsThatNeverWere) {
  EXPECT_EQ(router_.send(Route(12345), text_message("x")), SendResult::unreachable);
  EXPECT_EQ(router_.send(Route(std::uint64_t{1} << 40), text_message("x")), SendResult::unreachable);
}

TEST_F(Pair, CountsFramesBeyondTheLimit) {
  connect();
  void* stranger = context_.open(ZMQ_DEALER);
  ASSERT_EQ(zmq_connect(stranger, bound_.endpoint().c_str()), 0);
  constexpr std::uint64_t kSurplus = 100;
  for (std::uint64_t i = 1; i < limits::kFramesMax + kSurplus; ++i) zmq_send(stranger, "x", 1, ZMQ_SNDMORE);
  zmq_send(stranger, "x", 1, 0);
  const Received received = next(router_);
  EXPECT_EQ(received.frames.size(), limits::kFramesMax);
  EXPECT_EQ(received.surplus_frames, kSurplus);
  Intake intake("shard 0");
  Received copy;
  copy.frames.push_back(text_frame("x"));
  copy.surplus_frames = 1;
  EXPECT_FALSE(intake.admit(std::move(copy), monotonic_now()));
  EXPECT_EQ(intake.malformed_count(), 1u);

  ASSERT_EQ(dealer_->send(text_message("after")), SendResult::sent);
  EXPECT_EQ(text_of(next(router_).frames.at(0)), "after");
  zmq_close(stranger);
}

// Nobody of ours does that, but it must not end in a crash or reach somebody else.
TEST_F(Pair, AnswersAPeerThatNamesItself) {
  for (const std::string& name :
       {std::string("me"), std::string("longer than five bytes"), std::string("\1\0\0\0\1", 5)}) {
    void* stranger = context_.open(ZMQ_DEALER);
    ASSERT_EQ(zmq_setsockopt(stranger, ZMQ_ROUTING_ID, name.data(), name.size()), 0);
    ASSERT_EQ(zmq_connect(stranger, bound_.endpoint().c_str()), 0);
    zmq_send(stranger, "hi", 2, 0);
    zmq_send(stranger, "hi", 2, 0);
    const Received first = next(router_);
    EXPECT_EQ(next(router_).route, first.route);
    EXPECT_EQ(router_.send(first.route, text_message("yes")), SendResult::sent);
    std::array<char, 8> answer{};
    EXPECT_EQ(zmq_recv(stranger, answer.data(), answer.size(), 0), 3);
    zmq_close(stranger);
  }
}

class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawConnection() { close(fd_); }
  bool connected() const { return connected_; }
  void write(std::span<const std::byte> bytes) { EXPECT_GE(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0); }

 private:
  const int fd_;
  bool connected_;
};

// Field case S12.
TEST_F(Pair, SurvivesGarbage) {
  connect();
  std::vector<std::unique_ptr<RawConnection>> open_connections;
  for (unsigned seed = 0; seed < 50; ++seed) {
    auto connection = std::make_unique<RawConnection>(bound_.port);
    ASSERT_TRUE(connection->connected());
    connection->write(pattern(1 + seed * 13, seed * 7 + 1));
    if (seed % 2 == 0) open_connections.push_back(std::move(connection));
  }
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(RawConnection(bound_.port).connected());
  const std::string_view request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  RawConnection http(bound_.port);
  http.write(std::as_bytes(std::span(request)));

  void* stranger = context_.open(ZMQ_DEALER);
  ASSERT_EQ(zmq_connect(stranger, bound_.endpoint().c_str()), 0);
  int malformed = 0;
  const auto send = [&](std::span<const std::byte> bytes, int parts) {
    for (int part = 1; part <= parts; ++part)
      zmq_send(stranger, bytes.data(), bytes.size(), part < parts ? ZMQ_SNDMORE : 0);
    ++malformed;
  };
  send({}, 1);
  send({}, 3);
  send(pattern(1, 9), 1);
  send(pattern(1, 9), 5);
  send(pattern(4096, 9), 2);
  const Outgoing honest = heartbeat(1);
  const auto bytes = honest.header.bytes();
  for (std::size_t length = 0; length + 1 < bytes.size(); length += 3) send(bytes.first(length), 1);

  ASSERT_EQ(dealer_->send(heartbeat(77)), SendResult::sent);
  Intake intake("shard 0");
  bool found = false;
  EXPECT_TRUE(turn_until([&] {
    while (auto received = router_.receive()) {
      const auto message = intake.admit(*std::move(received), monotonic_now());
      found = found || (message && message->header().sequence == Sequence(77));
    }
    // ZeroMQ takes some garbage for the framing of its first version, so there may be more.
    return found && intake.malformed_count() >= static_cast<std::uint64_t>(malformed);
  })) << intake.malformed_count()
      << " of " << malformed;
  zmq_close(stranger);
}

TEST_F(Pair, SurvivesFlippedBits) {
  connect();
  const Outgoing honest = heartbeat(1);
  const std::vector<std::byte> bytes(honest.header.bytes().begin(), honest.header.bytes().end());
  Intake intake("shard 0");
  const Instant start = monotonic_now();
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::vector<std::byte> mutant = bytes;
    mutant[i / 8] ^= static_cast<std::byte>(1 << i % 8);
    ASSERT_EQ(dealer_->send({Frame::copy(mutant), {}}), SendResult::sent);
    const auto message = intake.admit(next(router_), start);
    if (message) refused += refuse(*message, JobId()).has_value() ? 1 : 0;
  }
  EXPECT_GT(intake.malformed_count(), 50u);
  // Those that hit the protocol version or the job.
  EXPECT_GE(refused, 16);
}

TEST(Intake, WarnsOnceAConnectionAndNotWithoutEnd) {
  log::start("");  // or the log's own first words would be counted
  Intake intake("shard 0");
  const Instant start{};
  const auto garbage = [](std::uint64_t route) {
    Received received;
    received.route = Route(route);
    received.peer = "192.0.2.1";
    received.frames.push_back(text_frame("garbage, long enough"));
    return received;
  };
  testing::internal::CaptureStderr();
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(intake.admit(garbage(1), start));
  const std::string once = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(once, '\n'), 1) << once;
  EXPECT_THAT(once, AllOf(HasSubstr("shard 0"), HasSubstr("192.0.2.1"), HasSubstr("magic")));

  testing::internal::CaptureStderr();
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(intake.admit(garbage(i), start));
  const std::string flood = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(flood, '\n'), 20) << flood;
  EXPECT_THAT(flood, HasSubstr("counted only"));

  testing::internal::CaptureStderr();
  EXPECT_FALSE(intake.admit(garbage(1), start + 1h));
  EXPECT_EQ(std::ranges::count(testing::internal::GetCapturedStderr(), '\n'), 1);
  EXPECT_EQ(intake.malformed_count(), 1051u);
}

std::string bind_fault(const Address& address) {
  Context context;
  RouterSocket router(context);
  try {
    router.bind(address);
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Field case S07.
TEST(RouterSocket, SaysWhyItCannotListen) {
  Context context;
  RouterSocket router(context);
  const Address taken = router.bind({"127.0.0.1", 0});
  EXPECT_EQ(bind_fault(taken), fmt::format("cannot listen on tcp://127.0.0.1:{}: Address already in use", taken.port));
  EXPECT_EQ(bind_fault({"203.0.113.1", 7070}),
            "cannot listen on tcp://203.0.113.1:7070: Cannot assign requested address");
  EXPECT_THAT(bind_fault({"no-such-host.invalid", 7070}), HasSubstr("cannot resolve 'no-such-host.invalid'"));
  if (geteuid() == 0) return;  // may listen anywhere
  EXPECT_EQ(bind_fault({"127.0.0.1", 80}), "cannot listen on tcp://127.0.0.1:80: Permission denied");
}

// Field case S17: what can be bound can be connected to by the same name.
TEST(RouterSocket, ListensOnNamesAndBothKindsOfAddresses) {
  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  for (const std::string host :
       {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", static_cast<const char*>(name.data())}) {
    Context context;
    RouterSocket router(context);
    Address bound;
    try {
      bound = router.bind({host, 0});
    } catch (const RunError& error) {
      // Machines without IPv6, or whose own name does not resolve.
      if (host.find(':') != std::string::npos || host == name.data()) continue;
      FAIL() << error.what();
    }
    ASSERT_NE(bound.port, 0) << host;
    std::vector<Address> ways = {{host, bound.port}};
    if (resolve(bound).front().is_wildcard()) ways = {{"127.0.0.1", bound.port}, advertised(bound, "")};
    for (const Address& way : ways) {
      DealerSocket dealer(context, way);
      Poller poller;
      poller.watch(dealer);
      const Instant limit = monotonic_now() + kPatience;
      while (!dealer.connected() && monotonic_now() < limit) {
        poller.wait(limit);
        while (dealer.next_event(monotonic_now())) {
        }
      }
      EXPECT_TRUE(dealer.connected()) << host << " as " << way.text();
    }
  }
}

// Field case S14 and S11: nothing is lost between threads that signals interrupt all the time.
TEST(RouterSocket, CountsEveryMessageOfManyThreadsUnderSignals) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kMessages = 2'000;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);

  const std::vector<std::byte> gradient = pattern(20'000, 6);
  std::vector<std::unique_ptr<Lease>> leases;
  Context context;
  RouterSocket router(context);
  const Address bound = router.bind({"127.0.0.1", 0});
  std::atomic<int> running{kThreads + 1};
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> answered(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    leases.push_back(std::make_unique<Lease>());
    threads.emplace_back([&, t, &lease = *leases.back()] {
      DealerSocket dealer(context, bound);
      Poller poller;
      poller.watch(dealer);
      const Instant limit = monotonic_now() + 2 * kPatience;
      while (answered[t] < kMessages && monotonic_now() < limit) {
        poller.wait(limit);
        while (dealer.next_event(monotonic_now()))
          for (std::uint64_t i = 0; i < kMessages; ++i) {
            Outgoing message = heartbeat(i);
            message.payload.push_back(Frame::borrow(gradient, lease));
            EXPECT_EQ(dealer.send(std::move(message)), SendResult::sent);
          }
        while (dealer.receive()) ++answered[t];
      }
      --running;
    });
  }
  std::atomic<std::uint64_t> received{0};
  threads.emplace_back([&] {
    Poller poller;
    poller.watch(router);
    Intake intake("shard 0");
    const Instant limit = monotonic_now() + 2 * kPatience;
    while (received < kThreads * kMessages && monotonic_now() < limit) {
      poller.wait(limit);
      while (auto arrived = router.receive()) {
        const Route route = arrived->route;
        const auto message = intake.admit(*std::move(arrived), monotonic_now());
        ASSERT_TRUE(message);
        ASSERT_EQ(message->payload().at(0).size(), gradient.size());
        ASSERT_EQ(message->payload()[0].bytes()[19'999], gradient[19'999]);
        ++received;
        ASSERT_EQ(router.send(route, heartbeat(message->header().sequence.value)), SendResult::sent);
      }
    }
    --running;
  });
  Poller pause;
  while (running > 0) {
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR2);
    pause.wait(monotonic_now() + 1ms);
  }
  for (std::thread& thread : threads) thread.join();
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(received, kThreads * kMessages);
  EXPECT_EQ(answered, std::vector<std::uint64_t>(kThreads, kMessages));
  for (const auto& lease : leases) EXPECT_TRUE(lease->idle());
}

}  // namespace
}  // namespace parley

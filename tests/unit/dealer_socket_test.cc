#include "common/transport/dealer_socket.h"

#include "common/base/error.h"
#include "common/transport/event_loop.h"
#include "common/transport/monotonic_clock.h"
#include "common/transport/router_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <dirent.h>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace parley {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kPatience = 30s;

Outgoing text_message(std::string_view text) {
  return {Frame::copy(std::as_bytes(std::span(text.data(), text.size()))), {}};
}

std::string text_of(const Frame& frame) { return {reinterpret_cast<const char*>(frame.bytes().data()), frame.size()}; }

// Serves `dealer` until `done`, noting its events; false where that takes too long.
bool serve(DealerSocket& dealer, std::vector<ConnectionEvent>& events, const std::function<bool()>& done) {
  Poller poller;
  poller.watch(dealer);
  const Instant limit = monotonic_now() + kPatience;
  while (!done()) {
    if (monotonic_now() >= limit) return false;
    poller.wait(std::min(limit, monotonic_now() + 5ms));
    while (auto event = dealer.next_event(monotonic_now())) events.push_back(*event);
  }
  return true;
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Accepts one connection, completes ZeroMQ's handshake and reads nothing more: a server that was stopped.
class StoppedServer {
 public:
  StoppedServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { greet(); });
  }
  ~StoppedServer() {
    thread_.join();
    close(connection_);
    close(listener_);
  }
  Address address() const { return {"127.0.0.1", port_}; }

 private:
  void greet() {
    connection_ = accept(listener_, nullptr, nullptr);
    std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
    greeting.resize(64, '\0');
    const std::string ready("\4\x1c\5READY\x0bSocket-Type\0\0\0\6ROUTER", 30);
    for (const std::string& part : {greeting, ready})
      EXPECT_EQ(send(connection_, part.data(), part.size(), MSG_NOSIGNAL), static_cast<ssize_t>(part.size()));
  }

  const int listener_;
  std::uint16_t port_ = 0;
  int connection_ = -1;
  std::thread thread_;
};

TEST(DealerSocket, TakesNothingBeforeItIsConnected) {
  Context context;
  RouterSocket router(context);
  DealerSocket dealer(context, router.bind({"127.0.0.1", 0}));
  Lease lease;
  const std::vector<std::byte> gradient(10'000);
  Outgoing message = text_message("early");
  message.payload.push_back(Frame::borrow(gradient, lease));
  EXPECT_EQ(dealer.send(std::move(message)), SendResult::unreachable);
  EXPECT_TRUE(lease.idle());
  EXPECT_FALSE(dealer.receive());
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  EXPECT_THAT(events, ElementsAre(ConnectionEvent::connected));
  EXPECT_EQ(dealer.send(text_message("now")), SendResult::sent);
}

// Field case S08.
TEST(DealerSocket, TriesAgainUntilSomebodyListens) {
  Context context;
  auto router = std::make_unique<RouterSocket>(context);
  const Address address = router->bind({"127.0.0.1", 0});
  router.reset();
  DealerSocket dealer(context, address);
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return events.size() >= 3; }));
  EXPECT_THAT(events, testing::Each(ConnectionEvent::failed));
  EXPECT_EQ(why_unreachable(address, 1s), "Connection refused");

  router = std::make_unique<RouterSocket>(context);
  router->bind(address);
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  EXPECT_EQ(events.back(), ConnectionEvent::connected);
  EXPECT_THAT(why_unreachable(address, 1s), HasSubstr("port is open"));
}

TEST(DealerSocket, DoesNotTryInABusyLoop) {
  Context context;
  auto router = std::make_unique<RouterSocket>(context);
  const Address address = router->bind({"127.0.0.1", 0});
  router.reset();
  DealerSocket dealer(context, address);
  std::vector<ConnectionEvent> events;
  const Instant end = monotonic_now() + 700ms;
  ASSERT_TRUE(serve(dealer, events, [&] { return monotonic_now() >= end; }));
  // 20 + 40 + 80 + 160 + 250 + ... ms.
  EXPECT_GE(events.size(), 2u);
  EXPECT_LE(events.size(), 8u);
}

TEST(DealerSocket, ConnectsAgainAndKeepsThePeersLastWords) {
  Context context;
  auto router = std::make_unique<RouterSocket>(context);
  const Address address = router->bind({"127.0.0.1", 0});
  DealerSocket dealer(context, address);
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  ASSERT_EQ(dealer.send(text_message("hello")), SendResult::sent);
  std::optional<Received> hello;
  ASSERT_TRUE(serve(dealer, events, [&] { return (hello = router->receive()).has_value(); }));
  ASSERT_EQ(router->send(hello->route, text_message("one")), SendResult::sent);
  ASSERT_EQ(router->send(hello->route, text_message("two")), SendResult::sent);
  router->close(10s);
  ASSERT_TRUE(serve(dealer, events, [&] { return !dealer.connected(); }));
  EXPECT_EQ(events[1], ConnectionEvent::disconnected);
  for (const char* word : {"one", "two"}) {
    const auto received = dealer.receive();
    ASSERT_TRUE(received);
    EXPECT_EQ(text_of(received->frames.at(0)), word);
  }

  router = std::make_unique<RouterSocket>(context);
  router->bind(address);
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  ASSERT_EQ(dealer.send(text_message("again")), SendResult::sent);
  std::optional<Received> again;
  ASSERT_TRUE(serve(dealer, events, [&] { return (again = router->receive()).has_value(); }));
  // Nothing of the first connection came along.
  EXPECT_EQ(text_of(again->frames.at(0)), "again");
}

// A loop takes a bounded number of messages a turn: what an ended connection left must make the next wait return at
// once.
TEST(DealerSocket, KeepsAPollerAwakeUntilItsLastWordsAreTaken) {
  Context context;
  auto router = std::make_unique<RouterSocket>(context);
  DealerSocket dealer(context, router->bind({"127.0.0.1", 0}));
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  ASSERT_EQ(dealer.send(text_message("hello")), SendResult::sent);
  std::optional<Received> hello;
  ASSERT_TRUE(serve(dealer, events, [&] { return (hello = router->receive()).has_value(); }));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(router->send(hello->route, text_message("word")), SendResult::sent);
  router->close(10s);
  ASSERT_TRUE(serve(dealer, events, [&] { return !dealer.connected(); }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dealer.next_deadline(), Instant::min());
    EXPECT_TRUE(dealer.receive());
  }
  EXPECT_GT(dealer.next_deadline(), Instant::min());
}

// Rule 8: a lost server must not keep the gradients that wait for it.
TEST(DealerSocket, ReleasesWhatIsQueuedWhenItReopens) {
  Context context;
  StoppedServer server;
  DealerSocket dealer(context, server.address());
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  const std::vector<std::byte> gradient(4 << 20);
  Lease lease;
  for (int i = 0; i < 16; ++i) {
    Outgoing message = text_message("push");
    message.payload.push_back(Frame::borrow(gradient, lease));
    ASSERT_EQ(dealer.send(std::move(message)), SendResult::sent);
  }
  EXPECT_FALSE(lease.idle());
  dealer.reopen(monotonic_now());
  EXPECT_FALSE(dealer.connected());
  EXPECT_TRUE(serve(dealer, events, [&] { return lease.idle(); }));
}

TEST(DealerSocket, ReleasesWhatIsQueuedWhenItEnds) {
  const std::vector<std::byte> gradient(4 << 20);
  Lease lease;
  {
    Context context;
    StoppedServer server;
    DealerSocket dealer(context, server.address());
    std::vector<ConnectionEvent> events;
    ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
    for (int i = 0; i < 16; ++i) {
      Outgoing message = text_message("push");
      message.payload.push_back(Frame::borrow(gradient, lease));
      ASSERT_EQ(dealer.send(std::move(message)), SendResult::sent);
    }
  }
  EXPECT_TRUE(lease.idle());
}

// A lingering close gives up on a peer that takes nothing (field case S08: no exit hangs).
TEST(DealerSocket, LingersNoLongerThanItWasTold) {
  const std::vector<std::byte> gradient(4 << 20);
  Lease lease;
  StoppedServer server;
  Instant start;
  {
    Context context;
    DealerSocket dealer(context, server.address());
    std::vector<ConnectionEvent> events;
    ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
    Outgoing message = text_message("push");
    for (int i = 0; i < 16; ++i) message.payload.push_back(Frame::borrow(gradient, lease));
    ASSERT_EQ(dealer.send(std::move(message)), SendResult::sent);
    start = monotonic_now();
    dealer.close(100ms);
  }
  EXPECT_GE(monotonic_now() - start, 100ms);
  EXPECT_LT(monotonic_now() - start, 10s);
  EXPECT_TRUE(lease.idle());
}

TEST(DealerSocket, SendsItsLastWords) {
  Context context;
  RouterSocket router(context);
  const Address address = router.bind({"127.0.0.1", 0});
  {
    DealerSocket dealer(context, address);
    std::vector<ConnectionEvent> events;
    ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
    ASSERT_EQ(dealer.send(text_message("done")), SendResult::sent);
    dealer.close(10s);
  }
  Poller poller;
  poller.watch(router);
  std::optional<Received> received;
  const Instant limit = monotonic_now() + kPatience;
  while (!received && monotonic_now() < limit) {
    poller.wait(limit);
    received = router.receive();
  }
  ASSERT_TRUE(received);
  EXPECT_EQ(text_of(received->frames.at(0)), "done");
}

// Field case S17: a name whose first address nobody listens on.
TEST(DealerSocket, TakesTheAddressThatWorks) {
  Context context;
  RouterSocket router(context);
  const Address bound = router.bind({"127.0.0.1", 0});
  std::vector<NumericAddress> candidates = resolve({"::1", bound.port});
  candidates.push_back(resolve({"127.0.0.2", bound.port}).front());
  candidates.push_back(resolve(bound).front());
  DealerSocket dealer(context, {"both.example", bound.port}, candidates);
  std::vector<ConnectionEvent> events;
  ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
  EXPECT_THAT(events, ElementsAre(ConnectionEvent::failed, ConnectionEvent::failed, ConnectionEvent::connected));
}

TEST(DealerSocket, NamesAPeerThatDoesNotResolve) {
  Context context;
  try {
    const DealerSocket dealer(context, {"no-such-host.invalid", 7070});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  }
}

// Field case S13: connections that come and go leave nothing behind.
TEST(DealerSocket, GivesItsFilesBack) {
  Context context;
  RouterSocket router(context);
  const Address address = router.bind({"127.0.0.1", 0});
  std::size_t before = 0;
  for (int i = 0; i < 60; ++i) {
    {
      DealerSocket dealer(context, address);
      std::vector<ConnectionEvent> events;
      ASSERT_TRUE(serve(dealer, events, [&] { return dealer.connected(); }));
      ASSERT_EQ(dealer.send(text_message("hello")), SendResult::sent);
      ASSERT_TRUE(serve(dealer, events, [&] { return router.receive().has_value(); }));
    }
    if (i == 9) before = open_files();
  }
  // ZeroMQ closes in the background.
  const Instant limit = monotonic_now() + kPatience;
  while (open_files() > before && monotonic_now() < limit) std::this_thread::yield();
  EXPECT_LE(open_files(), before);
}

// A peer that speaks something else is retried in peace.
TEST(DealerSocket, SurvivesAPeerThatIsNoParley) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::thread server([listener] {
    for (int i = 0; i < 3; ++i) {
      const int connection = accept(listener, nullptr, nullptr);
      const std::string_view text = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
      send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      close(connection);
    }
  });
  {
    Context context;
    DealerSocket dealer(context, {"127.0.0.1", ntohs(address.sin_port)});
    std::vector<ConnectionEvent> events;
    EXPECT_TRUE(serve(dealer, events, [&] { return events.size() == 3; }));
    EXPECT_THAT(events, testing::Each(ConnectionEvent::failed));
    server.join();
  }
  close(listener);
}

}  // namespace
}  // namespace parley

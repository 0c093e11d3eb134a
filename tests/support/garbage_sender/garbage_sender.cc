// garbage_sender ADDRESS JOB SEED COUNT: a stranger who speaks ZeroMQ. Sends to a port of a job what no process of that
// job would send: no frame of ours, honest messages cut at every length, with too many or too few parts, from a rank
// that does not exist, and COUNT of them with some bytes changed by SEED. Answers are read and dropped. Prints how many
// messages left.
#include "common/base/random.h"
#include "common/wire/message.h"

#include <fmt/core.h>
#include <xxhash.h>
#include <zmq.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace parley {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr int kLingerMs = 20'000;

class Stranger {
 public:
  explicit Stranger(const std::string& address) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
    zmq_setsockopt(socket_, ZMQ_LINGER, &kLingerMs, sizeof kLingerMs);
    if (zmq_connect(socket_, address.c_str()) != 0) {
      fmt::print(stderr, "{}: {}\n", address, zmq_strerror(zmq_errno()));
      std::exit(1);
    }
  }
  ~Stranger() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void send(const std::vector<Bytes>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i)
      zmq_send(socket_, frames[i].data(), frames[i].size(), i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    ++sent_;
    while (zmq_recv(socket_, nullptr, 0, ZMQ_DONTWAIT) >= 0) {
    }
  }
  std::uint64_t sent() const { return sent_; }

 private:
  void* context_;
  void* socket_;
  std::uint64_t sent_ = 0;
};

// One honest message of each kind that a worker sends, from a rank that no job has, so that no few changed bytes make
// it another worker's.
std::vector<Bytes> honest_messages(JobId job) {
  std::vector<Bytes> messages;
  const Header from{job, Generation(1), Role::worker, Rank(0xFFFF4D), Incarnation(1), Clock(3), Sequence(9)};
  const auto add = [&](auto body) {
    const Outgoing message = compose(from, std::move(body));
    const auto bytes = message.header.bytes();
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    messages.emplace_back(data, data + bytes.size());
  };
  wire::RegisterT registration;
  registration.has_rank = true;
  registration.host = "stranger";
  registration.endpoints = {"tcp://127.0.0.1:1"};
  registration.life = 42;
  registration.layout = std::make_unique<wire::ModelLayoutT>();
  registration.layout->slice_bytes = 1024;
  registration.layout->tensors.push_back(std::make_unique<wire::TensorT>());
  registration.layout->tensors.back()->name = "w";
  registration.layout->tensors.back()->shape = {2, 3};
  registration.config.push_back(std::make_unique<wire::EntryT>());
  registration.config.back()->key = "sync.mode";
  registration.config.back()->value = "bsp";
  add(std::move(registration));
  add(wire::HeartbeatT());
  add(wire::FinishedT());
  add(wire::DoneT());
  add(wire::NextBlockT());
  add(wire::AskT());
  wire::StoreSetT set;
  set.key = "key";
  set.value = {1, 2, 3};
  add(std::move(set));
  wire::PushPullT push;
  push.samples = 8;
  push.slices = {wire::SlicePush(0, wire::Presence::some, 3, 64)};
  push.present = {1, 0};
  add(std::move(push));
  wire::PullT pull;
  pull.exact = true;
  pull.slices = {wire::SlicePull(0, 3)};
  add(std::move(pull));
  wire::InitializeT initialize;
  initialize.slices = {wire::SliceValue(0, 64)};
  add(std::move(initialize));
  wire::VerdictT verdict;
  verdict.slices = {wire::SliceSquares(0, 1.0)};
  add(std::move(verdict));
  wire::ErrorT error;
  error.text = "a stranger is unhappy";
  add(std::move(error));
  return messages;
}

void send_odd_frames(Stranger& stranger, const std::vector<Bytes>& messages) {
  stranger.send({{}});
  stranger.send({{7}});
  stranger.send({{}, {}, {}});
  stranger.send({Bytes(1 << 20, 0xAB)});
  stranger.send(std::vector<Bytes>(2000, Bytes{1}));
  for (const Bytes& message : messages) {
    stranger.send({message});                               // of a rank that does not exist
    stranger.send({message, {}, Bytes(64), Bytes(12345)});  // with parts that belong to nothing
    stranger.send({{}, message});                           // as a REQ socket would
    for (std::size_t length = 0; length < message.size(); ++length)
      stranger.send({Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length))});
  }
}

void send_mutated(Stranger& stranger, const std::vector<Bytes>& messages, std::uint64_t seed, std::uint64_t count) {
  RandomStream random(seed, 0);
  for (std::uint64_t number = 0; number < count; ++number) {
    Bytes message = messages[random.below(messages.size())];
    for (std::uint64_t change = random.below(4) + 1; change > 0; --change)
      message[random.below(message.size())] = static_cast<std::uint8_t>(random.below(256));
    std::vector<Bytes> frames{message};
    for (std::uint64_t parts = random.below(3); parts > 0; --parts) frames.emplace_back(random.below(128));
    stranger.send(frames);
  }
}

}  // namespace
}  // namespace parley

int main(int argc, char** argv) {
  using namespace parley;
  if (argc != 5) {
    fmt::print(stderr, "usage: garbage_sender ADDRESS JOB SEED COUNT\n");
    return 2;
  }
  const std::string job = argv[2];
  std::vector<Bytes> messages = honest_messages(JobId(XXH64(job.data(), job.size(), 0)));
  {
    Stranger stranger(argv[1]);
    send_odd_frames(stranger, messages);
    send_mutated(stranger, messages, std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
    fmt::print("{}\n", stranger.sent());
  }
  return 0;
}

#include "worker/collective/gloo_collective.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "worker/collective/local_address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

namespace parley {
namespace {

using std::chrono::milliseconds;

// Gloo takes zero milliseconds as "wait for ever".
milliseconds gloo_timeout(Duration timeout) {
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(timeout));
}

// One line of what Gloo says, without the place in its own source that it begins with.
std::string gloo_text(const std::exception& error) {
  std::string text = error.what();
  if (text.starts_with('[')) {
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Gloo's view of our store: its keys get our prefix, its waits our timeout.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(RendezvousStore& store, const std::string& prefix, Duration timeout)
      : store_(store), prefix_(prefix), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& value) override {
    store_.set(prefix_ + key, std::as_bytes(std::span(value)));
  }
  std::vector<char> get(const std::string& key) override {
    std::vector<std::byte> value;
    try {
      value = store_.get(prefix_ + key, timeout_);
    } catch (const RunError& error) {
      throw RunError(fmt::format("waiting for worker {}: {}", rank_in(key), error.what()));
    }
    std::vector<char> chars(value.size());
    if (!value.empty()) std::memcpy(chars.data(), value.data(), value.size());
    return chars;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  // Each of Gloo's keys ends with the rank that sets it.
  static std::string rank_in(const std::string& key) { return key.substr(key.find_last_not_of("0123456789") + 1); }

  RendezvousStore& store_;
  const std::string prefix_;
  const Duration timeout_;
};

}  // namespace

GlooCollective::GlooCollective(const GlooOptions& options, RendezvousStore& store) : options_(options) {
  PARLEY_CHECK(options.rank.value < options.world_size, "rank {} of {}", options.rank, options.world_size);
  PARLEY_CHECK(options.timeout > Duration::zero(), "a collective needs a timeout");
  if (options.world_size == 1) return;
  std::signal(SIGPIPE, SIG_IGN);
  const LocalAddress local = local_address(options.host);
  try {
    auto device = gloo::transport::tcp::CreateDevice(local.address.c_str());
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank.value),
                                                               static_cast<int>(options.world_size));
    context->setTimeout(gloo_timeout(options.timeout));
    GlooStore keys(store, options.key_prefix, options.timeout);
    context->connectFullMesh(keys, device);
    // Gloo returns as soon as this rank is connected; one that left now would fail the others' connecting.
    gloo::BarrierOptions all_connected(context);
    gloo::barrier(all_connected);
    context_ = std::move(context);
  } catch (const RunError& error) {
    throw RunError(fmt::format("worker {}: the {} workers of the all-reduce could not meet: {}", options.rank,
                               options.world_size, error.what()));
  } catch (const std::exception& error) {
    throw RunError(fmt::format("worker {}: the {} workers of the all-reduce could not connect from {} within {} s: {}",
                               options.rank, options.world_size, local.address, to_seconds(options.timeout),
                               gloo_text(error)));
  }
}

GlooCollective::~GlooCollective() = default;

// Peers whose connection is broken: Gloo tells which only to those who try to use it, and the operation that failed may
// have been waiting for another one.
std::vector<std::uint32_t> GlooCollective::lost_peers() {
  std::vector<std::uint32_t> lost;
  const auto probe = context_->createUnboundBuffer(nullptr, 0);
  for (std::uint32_t peer = 0; peer < options_.world_size; ++peer) {
    if (peer == options_.rank.value) continue;
    try {
      probe->send(static_cast<int>(peer), gloo::Slot::build(gloo::kBarrierSlotPrefix, 1));
    } catch (const std::exception& error) {
      // What Gloo closed itself after a timeout was not lost.
      if (std::strstr(error.what(), "Application timeout") == nullptr) lost.push_back(peer);
    }
  }
  return lost;
}

template <class Operation>
void GlooCollective::run(std::string_view name, std::size_t bytes, Operation&& operation) {
  if (!failure_.empty()) throw RunError(failure_);
  const auto started = std::chrono::steady_clock::now();
  try {
    operation();
  } catch (const std::exception& error) {
    const double waited = to_seconds(std::chrono::steady_clock::now() - started);
    const std::vector<std::uint32_t> lost = lost_peers();
    const std::string lost_text =
        lost.empty() ? "" : fmt::format("lost the connection to worker {}: ", fmt::join(lost, ", "));
    failure_ = fmt::format("worker {}: {} of {} bytes failed after {:.1f} s: {}{}", options_.rank, name, bytes, waited,
                           lost_text, gloo_text(error));
    context_->closeConnections();
    throw RunError(failure_);
  }
}

void GlooCollective::all_reduce(std::span<float> values) {
  if (values.empty() || !context_) return;
  run("all_reduce", values.size_bytes(), [&] {
    gloo::AllreduceOptions call(context_);
    call.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    call.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    call.setOutput(values.data(), values.size());
    gloo::allreduce(call);
  });
}

void GlooCollective::broadcast(std::span<std::byte> bytes, Rank root) {
  PARLEY_CHECK(root.value < options_.world_size, "root {} of {} ranks", root, options_.world_size);
  if (bytes.empty() || !context_) return;
  run("broadcast", bytes.size(), [&] {
    gloo::BroadcastOptions call(context_);
    call.setRoot(static_cast<int>(root.value));
    call.setOutput(reinterpret_cast<char*>(bytes.data()), bytes.size());
    gloo::broadcast(call);
  });
}

void GlooCollective::barrier() {
  if (!context_) return;
  run("barrier", 0, [&] {
    gloo::BarrierOptions call(context_);
    gloo::barrier(call);
  });
}

}  // namespace parley

#include "tests/support/memory_collective.h"

#include "common/base/error.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <thread>

namespace parley::testing {

class MemoryGroup::Member final : public Collective {
 public:
  Member(MemoryGroup& group, std::uint32_t rank, std::uint32_t world_size)
      : group_(group), rank_(rank), world_size_(world_size) {}
  Rank rank() const override { return Rank(rank_); }
  std::uint32_t world_size() const override { return world_size_; }
  void all_reduce(std::span<float> values) override {
    group_.call(rank_, {"all_reduce", std::as_writable_bytes(values)});
  }
  void broadcast(std::span<std::byte> bytes, Rank root) override {
    group_.call(rank_, {fmt::format("broadcast from {}", root), bytes});
  }
  void barrier() override { group_.call(rank_, {"barrier", {}}); }

 private:
  MemoryGroup& group_;
  const std::uint32_t rank_;
  const std::uint32_t world_size_;
};

MemoryGroup::MemoryGroup(std::uint32_t world_size, Duration timeout) : timeout_(timeout), calls_(world_size) {
  for (std::uint32_t rank = 0; rank < world_size; ++rank)
    members_.push_back(std::make_unique<Member>(*this, rank, world_size));
}

MemoryGroup::~MemoryGroup() = default;

Collective& MemoryGroup::at(std::uint32_t rank) { return *members_.at(rank); }

void MemoryGroup::kill(std::uint32_t rank) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = fmt::format("worker {} died", rank);
  }
  changed_.notify_all();
}

void MemoryGroup::call(std::uint32_t rank, const Call& call) {
  std::unique_lock lock(mutex_);
  if (!broken_.empty()) throw RunError(broken_);
  const std::uint64_t operation = operations_;
  calls_[rank] = call;
  if (++arrived_ == calls_.size()) {
    carry_out();
    arrived_ = 0;
    ++operations_;
    changed_.notify_all();
  } else {
    const bool done = changed_.wait_for(lock, timeout_, [&] { return operations_ != operation || !broken_.empty(); });
    if (!done) broken_ = fmt::format("{} waited in vain", call.operation);
  }
  if (!broken_.empty()) {
    changed_.notify_all();
    throw RunError(broken_);
  }
}

void MemoryGroup::carry_out() {
  const Call& first = calls_[0];
  for (const Call& call : calls_) {
    if (call.operation != first.operation || call.bytes.size() != first.bytes.size()) {
      broken_ = fmt::format("one rank calls {} of {} bytes, another {} of {}", first.operation, first.bytes.size(),
                            call.operation, call.bytes.size());
      return;
    }
  }
  const auto floats = [](const Call& call) {
    return std::span(reinterpret_cast<float*>(call.bytes.data()), call.bytes.size() / 4);
  };
  std::span<const std::byte> source = first.bytes;
  if (first.operation == "all_reduce") {
    for (std::size_t rank = 1; rank < calls_.size(); ++rank) {
      for (std::size_t i = 0; i < floats(first).size(); ++i) floats(first)[i] += floats(calls_[rank])[i];
    }
  } else if (first.operation.starts_with("broadcast")) {
    source = calls_.at(std::stoul(first.operation.substr(sizeof("broadcast from")))).bytes;
  }
  for (const Call& call : calls_) {
    if (call.bytes.data() != source.data() && !source.empty())
      std::memcpy(call.bytes.data(), source.data(), source.size());
  }
}

void run_ranks(std::uint32_t world_size, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::exception_ptr> errors(world_size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace parley::testing

#include "tests/simulation/sim_worker.h"

#include "common/base/log.h"
#include "tests/simulation/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace parley::simulation {
namespace {

MemberOptions member_options(const Scenario& scenario, Rank rank) {
  MemberOptions options;
  options.job = kJob;
  options.role = Role::worker;
  options.rank = rank;
  options.coordinator = "simulated";
  options.host = "simulated";
  options.life = 1000 + rank.value;
  options.tensors = scenario.tensors;
  options.slice_bytes = scenario.slice_bytes;
  options.samples = 100;
  return options;
}

}  // namespace

SimWorker::SimWorker(const Scenario& scenario, const Layout& layout, const Placement& placement,
                     const Reference* reference, EventQueue& events, RandomStream& random, Rank rank)
    : scenario_(scenario),
      layout_(layout),
      placement_(placement),
      reference_(reference),
      events_(events),
      random_(random),
      rank_(rank),
      member_(member_options(scenario, rank)),
      half0_(layout.arena_count()),
      half1_(layout.arena_count()),
      gradient_memory_(layout.arena_count()),
      parameters_(layout, half0_.values(), half1_.values()),
      gradients_(layout, gradient_memory_.values()) {
  for (std::uint32_t tensor = 0; tensor < layout.tensors().size(); ++tensor)
    for (std::uint64_t i = 0; i < layout.place(tensor).count; ++i)
      half0_.values()[layout.place(tensor).offset + i] = scenario.initial(tensor, i);
}

void SimWorker::start() {
  Member::Out out;
  member_.start(events_.now(), out);
  send_control(out);
}

void SimWorker::tick() {
  Member::Out out;
  member_.tick(events_.now(), out);
  send_control(out);
}

void SimWorker::receive_control(const Incoming& message) {
  Member::Out out;
  member_.receive(message, events_.now(), out);
  send_control(out);
  if (member_.over() && !member_.over()->ok)
    throw Violation(fmt::format("worker {}: {}", rank_, member_.over()->reason));
  advance();
}

void SimWorker::control_reconnected() {
  Member::Out out;
  member_.reconnected(events_.now(), out);
  send_control(out);
}

void SimWorker::receive(ShardId from, Incoming message) {
  ParameterClient::Out out;
  client_->receive(from, std::move(message), out);
  send(out);
  if (client_->fault()) throw Violation(fmt::format("worker {}: {}", rank_, *client_->fault()));
  advance();
}

void SimWorker::reconnected(ShardId shard) {
  if (!client_) return;
  ParameterClient::Out out;
  client_->reconnected(shard, out);
  send(out);
}

void SimWorker::send(ParameterClient::Out& out) {
  for (auto& send : out.sends()) shards_[send.to.value]->send_up(std::move(send.message));
}

void SimWorker::send_control(Member::Out& out) {
  for (auto& message : out) control_->send_up(std::move(message));
}

Duration SimWorker::compute_time() {
  const std::uint64_t factor = scenario_.slow_rank == rank_ ? 10 : 1;
  return Duration(1 + random_.below(500'000 * factor));
}

// Does what is next, if it can be done now.
void SimWorker::advance() {
  const MembershipView& group = member_.membership();
  ParameterClient::Out out;
  Member::Out control;
  if (stage_ == Stage::registering && group.phase == wire::Phase::running) {
    ClientOptions options{kJob, Generation(1), rank_, member_.incarnation(), scenario_.sync.gathers(), 256};
    client_ = std::make_unique<ParameterClient>(options, layout_, placement_, parameters_, gradients_);
    stage_ = Stage::training;
    client_->start(out);
  }
  if (!client_) return;
  const bool stopped = group.stop_clock <= client_->clock();
  if (stage_ == Stage::stepping && stopped) {
    client_->stop();
    stage_ = Stage::finishing;
    client_->finish(client_->clock(), true, out);
  }
  if ((stage_ == Stage::training || stage_ == Stage::stepping) && client_->complete()) {
    stage_ = Stage::training;
    const Clock clock = client_->clock();
    if (stopped || clock.value >= scenario_.steps[rank_.value]) {
      stage_ = Stage::finishing;
      client_->finish(clock, stopped, out);
    } else if (rank_ == Rank(0) && scenario_.stop_at == clock) {
      if (!stop_asked_) member_.request_stop(clock, control);
      stop_asked_ = true;
    } else {
      stage_ = Stage::stepping;
      events_.after(compute_time(), [this] { begin_step(); });
    }
  }
  if (stage_ == Stage::finishing && client_->finished()) {
    stage_ = Stage::final_pull;
    member_.finished(client_->clock(), control);
  }
  if (stage_ == Stage::final_pull && client_->finished() && group.phase >= wire::Phase::all_finished)
    client_->pull_final(out);
  if (stage_ == Stage::final_pull && client_->complete()) {
    stage_ = Stage::done;
    member_.done({{"clock", static_cast<double>(client_->clock().value)}}, control);
  }
  send(out);
  send_control(control);
}

void SimWorker::begin_step() {
  if (stage_ != Stage::stepping || !client_->complete()) return;  // the group stopped meanwhile
  if (!client_->gradients_idle()) {
    events_.after(Duration(1000), [this] { begin_step(); });
    return;
  }
  const Clock clock = client_->clock();
  check_weights(clock);
  client_->begin(clock, scenario_.samples(rank_, clock));
  std::vector<SliceId> all;
  for (std::uint32_t slice = 0; slice < layout_.slice_count(); ++slice) all.push_back(SliceId(slice));
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random_.below(i)]);
  push_some(clock, std::move(all));
  advance();
}

// Pushes a random number of slices now and the rest later.
void SimWorker::push_some(Clock clock, std::vector<SliceId> rest) {
  if (stage_ != Stage::stepping || client_->clock() != clock || rest.empty()) return;
  const std::size_t count = 1 + random_.below(rest.size());
  std::vector<std::vector<std::uint8_t>> present;
  std::vector<ParameterClient::Ready> ready;
  for (std::size_t i = 0; i < count; ++i) {
    fill_gradient(rest[i], clock);
    present.emplace_back();
    for (const SlicePart& part : layout_.slice(rest[i]).parts)
      present.back().push_back(static_cast<std::uint8_t>(scenario_.present(rank_, clock, part.tensor)));
  }
  for (std::size_t i = 0; i < count; ++i) ready.push_back({rest[i], present[i]});
  ParameterClient::Out out;
  client_->push(ready, out);
  send(out);
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
  events_.after(compute_time(), [this, clock, rest = std::move(rest)]() mutable { push_some(clock, std::move(rest)); });
}

void SimWorker::fill_gradient(SliceId id, Clock clock) {
  const Slice& slice = layout_.slice(id);
  const auto weights = parameters_.slice(id, clock);
  const auto gradient = gradients_.slice(id);
  for (const SlicePart& part : slice.parts) {
    const std::uint64_t first = slice.offset + part.begin - layout_.place(part.tensor).offset;
    for (std::uint64_t i = 0; i < part.count; ++i)
      gradient[part.begin + i] = scenario_.gradient(rank_, clock, part.tensor, first + i, weights[part.begin + i]);
  }
}

void SimWorker::check_weights(Clock clock) const {
  if (reference_ == nullptr) return;
  for (std::uint32_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
    const auto& expected = reference_->values(clock, tensor);
    const float* found = parameters_.half(clock).data() + layout_.place(tensor).offset;
    if (!expected.empty() && std::memcmp(found, expected.data(), expected.size() * sizeof(float)) != 0)
      throw Violation(fmt::format("worker {} computes clock {} on wrong weights of '{}'", rank_, clock,
                                  layout_.tensor(tensor).name));
  }
}

std::vector<float> SimWorker::final_values(std::uint32_t tensor) const {
  const auto half = parameters_.half(client_->clock());
  const TensorPlace& place = layout_.place(tensor);
  return {half.begin() + static_cast<std::ptrdiff_t>(place.offset),
          half.begin() + static_cast<std::ptrdiff_t>(place.offset + place.count)};
}

std::string SimWorker::state() const {
  return fmt::format("worker {} at stage {}, clock {}, waits for: {}", rank_, static_cast<int>(stage_),
                     client_ ? client_->clock().value : 0, client_ ? client_->waiting_for() : "membership");
}

}  // namespace parley::simulation

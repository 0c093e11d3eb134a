#include "worker/sync/server_strategy.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/monotonic_clock.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley {

ServerStrategy::ServerStrategy(const ServerStrategyOptions& options, ControlLoop& control, const Layout& layout,
                               ParameterArena parameters, GradientArena gradients)
    : options_(options), control_(control), layout_(layout), parameters_(parameters), gradients_(gradients) {}

ServerStrategy::~ServerStrategy() {
  control_.subscribe(nullptr);  // before the loop that it wakes
}

Clock ServerStrategy::start() {
  const auto [rank, incarnation] = control_.wait_welcome();
  const MembershipView group = control_.wait_phase(wire::Phase::running);
  if (group.shards.empty()) throw RunError("the coordinator names no shards: is it a server of another mode?");
  placement_.emplace(layout_, static_cast<std::uint32_t>(group.shards.size()));
  const ClientOptions client{options_.job, Generation(1), rank, incarnation, options_.gathers};
  client_ = std::make_unique<ParameterClient>(client, layout_, *placement_, parameters_, gradients_);
  comms_ = std::make_unique<CommsLoop>(control_, *client_, layout_, group.shards, options_.connect_timeout);
  control_.subscribe([this] { comms_->wake(); });
  return wait_complete().clock;
}

// Throws the job's reason where it ended meanwhile.
CommsLoop::Progress ServerStrategy::wait_complete() {
  const auto progress = comms_->wait([](const auto& now) { return now.complete; }, [this] { return job_over(); });
  if (!progress) throw RunError(control_.wait_over().reason);
  return *progress;
}

StepResult ServerStrategy::begin_step(Clock clock, std::uint64_t samples) {
  // Who asked for a stop here must not push this clock before it is told whether the group stops: others have it
  // already.
  if (stop_requested_ && *stop_requested_ <= clock)
    comms_->wait([&](const auto&) { return group_stops(clock); }, [this] { return job_over(); });
  if (job_over()) throw RunError(control_.wait_over().reason);
  if (group_stops(clock)) return StepResult::stopped;
  comms_->begin(clock, samples);
  return StepResult::advanced;
}

void ServerStrategy::slice_ready(SliceId slice, std::span<const std::uint8_t> present) {
  comms_->ready(slice, present);
}

StepResult ServerStrategy::finish_step(Clock clock) {
  const Instant since = monotonic_now();
  // In bsp a stopped clock is never answered; in ssp and asp it is, since everybody who waits is released.
  const auto stops = [&] { return options_.gathers && group_stops(clock); };
  const auto progress = comms_->wait([&](const auto& now) { return now.complete && now.clock > clock; },
                                     [&] { return job_over() || stops(); });
  account(since, progress ? progress->waited_us : 0);
  if (progress) return StepResult::advanced;
  if (job_over()) throw RunError(control_.wait_over().reason);
  comms_->stop();
  return StepResult::stopped;
}

void ServerStrategy::account(Instant since, std::uint64_t waited_us) {
  const double blocked = to_seconds(monotonic_now() - since);
  const double waiting = std::min(blocked, static_cast<double>(waited_us) * 1e-6);
  waiting_seconds_ += waiting;
  communication_seconds_ += blocked - waiting;
}

void ServerStrategy::request_stop(Clock clock) {
  stop_requested_ = clock;
  control_.request_stop(clock);
}

Clock ServerStrategy::finish(Clock clock) {
  comms_->finish(clock, options_.gathers && group_stops(clock));
  if (!comms_->wait([](const auto& now) { return now.finished; }, [this] { return job_over(); }))
    throw RunError(control_.wait_over().reason);
  control_.finished(clock);
  control_.wait_phase(wire::Phase::all_finished);
  comms_->pull_final();
  return wait_complete().clock;
}

StrategyStats ServerStrategy::stats() const {
  StrategyStats stats;
  stats.communication_seconds = communication_seconds_;
  stats.waiting_seconds = waiting_seconds_;
  if (!comms_) return stats;
  const ClientCounters counters = comms_->progress().counters;
  const double answers = std::max<double>(1, static_cast<double>(counters.answers));
  stats.bytes_pushed = counters.bytes_pushed;
  stats.bytes_pulled = counters.bytes_pulled;
  stats.staleness_mean = static_cast<double>(counters.lead_sum) / answers;
  stats.staleness_max = counters.lead_max;
  stats.update_lag_mean = static_cast<double>(counters.lag_sum) / answers;
  stats.update_lag_max = counters.lag_max;
  return stats;
}

}  // namespace parley

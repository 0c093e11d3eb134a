#include "worker/training/trainer.h"

#include "common/base/log.h"
#include "common/base/random.h"

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace parley {
namespace {

using std::chrono::steady_clock;

double seconds_between(steady_clock::time_point begin, steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Seconds since it was made or last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = steady_clock::now();
    return seconds_between(std::exchange(last_, now), now);
  }

 private:
  steady_clock::time_point last_ = steady_clock::now();
};

// Streams of different ranks and clocks do not meet: the pair is mixed as one 96-bit value would be.
std::uint64_t step_seed(std::uint64_t seed, Rank rank, Clock clock) {
  return mix64(mix64(mix64(seed) ^ rank.value) ^ clock.value);
}

}  // namespace

double TrainerResult::samples_per_second() const {
  return seconds > 0 ? static_cast<double>(group_samples) / seconds : 0;
}

TimeShares TrainerResult::time_shares() const {
  if (seconds <= 0) return {};
  return {.data = times.data / seconds,
          .compute = times.compute() / seconds,
          .communication = times.communication / seconds,
          .waiting = times.waiting / seconds,
          .evaluation = evaluation_seconds / seconds};
}

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts) : options_(options), parts_(parts) {}

double Trainer::seconds_since_start() const { return seconds_between(started_, steady_clock::now()); }

bool Trainer::at_end(Clock clock) const { return options_.max_steps > 0 && clock.value >= options_.max_steps; }

StepTimes Trainer::blocked() {
  const StrategyStats now = parts_.strategy.stats();
  const StrategyStats before = std::exchange(seen_, now);
  return {.communication = now.communication_seconds - before.communication_seconds,
          .waiting = now.waiting_seconds - before.waiting_seconds};
}

TrainerResult Trainer::run() {
  Clock clock = parts_.strategy.start();
  result_.start = clock;
  parts_.binding.select(clock);
  parts_.model.set_training(true);
  seen_ = parts_.strategy.stats();
  started_ = steady_clock::now();

  std::optional<std::uint64_t> epoch;
  std::uint64_t taken_at_start = 0;
  while (!at_end(clock)) {
    Stopwatch watch;
    const std::optional<Batch> batch = parts_.batches.next(clock);
    if (!batch) {
      result_.group_samples = parts_.batches.samples_total() - taken_at_start;
      break;
    }
    const double data_seconds = watch.lap();
    if (!epoch) taken_at_start = batch->taken_before;
    if (epoch && *epoch < batch->epoch) finish_epoch(clock, *epoch);
    epoch = std::max(epoch.value_or(0), batch->epoch);
    if (options_.max_seconds > Duration::zero() && seconds_since_start() >= to_seconds(options_.max_seconds))
      ask_for_stop(clock, "train.max_seconds has passed");
    if (step(clock, *batch, data_seconds) == StepResult::stopped) break;
    ++clock;
    result_.group_samples = batch->taken_after - taken_at_start;
    parts_.binding.select(clock);
    report_progress(clock, *epoch, false);
  }
  finish(clock);
  report_progress(clock, epoch.value_or(0), true);
  return result_;
}

void Trainer::finish(Clock clock) {
  result_.end = clock;
  result_.final_half = parts_.strategy.finish(clock);
  parts_.binding.select(result_.final_half);
  result_.seconds = seconds_since_start();
  result_.times += blocked();
  result_.strategy = parts_.strategy.stats();
  if (parts_.metrics != nullptr) parts_.metrics->flush();
  if (parts_.evaluator == nullptr) return;
  result_.evaluation = parts_.evaluator->evaluate();
  accuracy_ = result_.evaluation->accuracy;
  log::info("finished at clock {}: test accuracy {:.2f} %, test loss {:.4f}, {:.1f} s", clock, 100 * *accuracy_,
            result_.evaluation->loss, result_.seconds);
}

StepResult Trainer::step(Clock clock, const Batch& batch, double data_seconds) {
  Strategy& strategy = parts_.strategy;
  if (strategy.begin_step(clock, batch.ids.size()) == StepResult::stopped) return StepResult::stopped;
  StepTimes times{.data = data_seconds};
  const std::optional<double> loss = compute(clock, batch, times);
  if (loss) loss_ = loss;
  if (strategy.finish_step(clock) == StepResult::stopped) return StepResult::stopped;

  times += blocked();
  result_.times += times;
  result_.samples += batch.ids.size();
  if (parts_.metrics != nullptr)
    parts_.metrics->write({.rank = options_.rank,
                           .clock = clock,
                           .epoch = batch.epoch,
                           .samples = batch.ids.size(),
                           .loss = loss,
                           .learning_rate = learning_rate(options_.schedule, clock),
                           .times = times});
  return StepResult::advanced;
}

// Forward and backward; afterwards all slices are marked ready. Returns the loss, where there are samples.
std::optional<double> Trainer::compute(Clock clock, const Batch& batch, StepTimes& times) {
  parts_.tracker.begin_step();
  if (batch.ids.empty()) {
    parts_.tracker.finish_backward(/*trained=*/false);
    return std::nullopt;
  }
  Stopwatch watch;
  const auto [inputs, labels] = parts_.loader.load(batch.ids);
  times.data += watch.lap();
  at::manual_seed(step_seed(options_.seed, options_.rank, clock));
  const at::Tensor loss = at::cross_entropy_loss(parts_.model.forward(inputs), labels);
  times.forward = watch.lap();
  loss.backward();
  parts_.tracker.finish_backward(/*trained=*/true);
  const double value = loss.item<double>();
  times.backward = watch.lap();
  if (options_.slow_factor > 1) {
    // As if the step had been computed on a slower machine: the pause counts as computing.
    std::this_thread::sleep_for(from_seconds((options_.slow_factor - 1) * times.compute()));
    times.backward += watch.lap();
  }
  return value;
}

void Trainer::finish_epoch(Clock clock, std::uint64_t epoch) {
  if (parts_.evaluator == nullptr) return;
  Stopwatch watch;
  const Evaluation evaluation = parts_.evaluator->evaluate();
  result_.evaluation_seconds += watch.lap();
  accuracy_ = evaluation.accuracy;
  log::info("epoch {} done at clock {}: test accuracy {:.2f} %, test loss {:.4f}, {:.1f} s", epoch + 1, clock,
            100 * evaluation.accuracy, evaluation.loss, seconds_since_start());
  if (options_.target_accuracy > 0 && evaluation.accuracy >= options_.target_accuracy)
    ask_for_stop(clock, "train.target_accuracy is reached");
}

void Trainer::ask_for_stop(Clock clock, const char* reason) {
  if (stop_asked_ || parts_.evaluator == nullptr) return;
  stop_asked_ = true;
  log::info("asking the group to stop at clock {}: {}", clock, reason);
  parts_.strategy.request_stop(clock);
}

void Trainer::report_progress(Clock done, std::uint64_t epoch, bool last) {
  if (parts_.progress == nullptr) return;
  std::uint64_t total = last ? done.value : parts_.batches.expected_steps(done);
  if (options_.max_steps > 0) total = std::min(total, options_.max_steps);
  const double seconds = std::max(seconds_since_start(), 1e-9);
  parts_.progress->write(Instant(steady_clock::now().time_since_epoch()),
                         {.clock = done,
                          .total = total,
                          .epoch = epoch,
                          .loss = loss_,
                          .accuracy = accuracy_,
                          .samples_per_second = static_cast<double>(result_.group_samples) / seconds},
                         last);
}

}  // namespace parley

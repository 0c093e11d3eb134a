// The training loop of one rank, the same in every sync mode: batch, forward, backward, step, evaluation in between.
// How new weights come about is the strategy's business.
//
// Randomness: before each clock torch's generator is seeded from (seed, rank, clock), so that dropout does not depend
// on what ran before (a restart, an evaluation).
//
// Evaluation at the start of clock c sees version c: it runs between two steps, by the rank that was given an evaluator
// (rank 0), whenever an epoch has ended, and once more on the final weights.
//
// Belongs to one thread, the one that all strategy calls but slice_ready come from.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/observe/metrics_writer.h"
#include "common/observe/progress_writer.h"
#include "common/observe/run_report.h"
#include "common/observe/step_record.h"
#include "common/optimizer/schedule.h"
#include "worker/data/batch_source.h"
#include "worker/models/model.h"
#include "worker/sync/strategy.h"
#include "worker/training/batch_loader.h"
#include "worker/training/evaluator.h"
#include "worker/training/gradient_tracker.h"
#include "worker/training/module_binding.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace parley {

struct TrainerOptions {
  Rank rank;
  std::uint64_t seed = 0;
  std::uint64_t max_steps = 0;              // stop at this clock, the same on all ranks; 0: no limit
  Duration max_seconds = Duration::zero();  // ask for a stop after this time; zero: no limit
  double target_accuracy = 0;               // ask for a stop once an evaluation reaches it; 0: none
  double slow_factor = 1;                   // this rank's steps take so many times as long (debug); at least 1
  ScheduleOptions schedule;                 // for the record only: who applies the gradient reads its own
};

// What a trainer works with; all of it outlives the trainer. The last three may be null.
struct TrainerParts {
  Model& model;
  ModuleBinding& binding;
  GradientTracker& tracker;
  Strategy& strategy;
  BatchSource& batches;
  BatchLoader& loader;
  Evaluator* evaluator = nullptr;  // the rank that evaluates, asks for stops, and logs epochs
  MetricsWriter* metrics = nullptr;
  ProgressWriter* progress = nullptr;
};

struct TrainerResult {
  Clock start;  // the first clock of this life
  Clock end;    // the final weights' clock; they stand in half(final_half)
  Clock final_half;
  double seconds = 0;                    // from the first step until the final weights were there
  double evaluation_seconds = 0;         // of them, for evaluations in between
  StepTimes times;                       // of them, sums over the steps
  std::uint64_t samples = 0;             // of this rank
  std::uint64_t group_samples = 0;       // of all ranks
  std::optional<Evaluation> evaluation;  // of the final weights, by the rank that evaluates
  StrategyStats strategy;

  double samples_per_second() const;
  TimeShares time_shares() const;
};

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // Trains until the data, the steps or the group end. Once. Whatever goes wrong is thrown.
  TrainerResult run();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  bool at_end(Clock clock) const;
  StepResult step(Clock clock, const Batch& batch, double data_seconds);
  std::optional<double> compute(Clock clock, const Batch& batch, StepTimes& times);
  void finish(Clock clock);
  void finish_epoch(Clock clock, std::uint64_t epoch);
  void ask_for_stop(Clock clock, const char* reason);
  void report_progress(Clock done, std::uint64_t epoch, bool last);
  // What the strategy has blocked this thread since it was last asked.
  StepTimes blocked();
  double seconds_since_start() const;

  const TrainerOptions options_;
  TrainerParts parts_;
  TrainerResult result_;
  SteadyTime started_;
  StrategyStats seen_;              // up to the last call of blocked()
  std::optional<double> loss_;      // of the last step that had samples
  std::optional<double> accuracy_;  // of the last evaluation
  bool stop_asked_ = false;
};

}  // namespace parley

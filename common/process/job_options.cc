#include "common/process/job_options.h"

#include <xxhash.h>

#include <algorithm>
#include <unistd.h>

namespace parley {

JobId job_id(const Config& config) { return JobId(XXH64(config.cluster.job.data(), config.cluster.job.size(), 0)); }

OptimizerOptions optimizer_options(const Config& config) {
  OptimizerOptions options;
  switch (config.optimizer.name) {
    case OptimizerName::sgd:
      options.kind = OptimizerKind::sgd;
      break;
    case OptimizerName::adam:
      options.kind = OptimizerKind::adam;
      break;
    case OptimizerName::adamw:
      options.kind = OptimizerKind::adamw;
      break;
    case OptimizerName::adagrad:
      options.kind = OptimizerKind::adagrad;
      break;
    case OptimizerName::rmsprop:
      options.kind = OptimizerKind::rmsprop;
      break;
  }
  options.momentum = config.optimizer.momentum;
  options.nesterov = config.optimizer.nesterov;
  options.beta1 = config.optimizer.beta1;
  options.beta2 = config.optimizer.beta2;
  options.alpha = config.optimizer.alpha;
  options.epsilon = config.optimizer.epsilon;
  return options;
}

std::vector<GroupOptions> group_options(const Config& config) {
  return {{config.optimizer.weight_decay, 1.0}, {0.0, 1.0}};
}

ScheduleOptions schedule_options(const Config& config, std::uint64_t samples) {
  ScheduleOptions options;
  switch (config.optimizer.schedule) {
    case Schedule::constant:
      options.kind = ScheduleKind::constant;
      break;
    case Schedule::step:
      options.kind = ScheduleKind::step;
      break;
    case Schedule::cosine:
      options.kind = ScheduleKind::cosine;
      break;
  }
  options.base_rate = config.optimizer.learning_rate;
  options.warmup_steps = static_cast<std::uint64_t>(config.optimizer.warmup_steps);
  options.every_steps = static_cast<std::uint64_t>(config.optimizer.step_every);
  options.gamma = config.optimizer.step_gamma;
  options.floor_rate = config.optimizer.final_learning_rate;
  options.total_steps =
      BatchPlan(batch_plan_options(config, samples)).total_steps(static_cast<std::uint64_t>(config.train.epochs));
  return options;
}

BatchPlanOptions batch_plan_options(const Config& config, std::uint64_t samples) {
  return {samples, static_cast<std::uint64_t>(global_batch(config)), static_cast<std::uint32_t>(worker_count(config)),
          static_cast<std::uint64_t>(config.train.seed)};
}

BlockDispenserOptions block_options(const Config& config) {
  const auto workers = static_cast<std::uint64_t>(worker_count(config));
  const auto batch = static_cast<std::uint64_t>(global_batch(config));
  return {0, std::max<std::uint64_t>(1, batch / workers), static_cast<std::uint64_t>(config.train.epochs)};
}

MemberOptions member_options(const CommandLine& line, const std::string& host, std::uint64_t life) {
  const Config& config = line.settings.config;
  MemberOptions options;
  options.job = job_id(config);
  options.role = line.role;
  options.rank = line.rank;
  options.coordinator = config.cluster.coordinator;
  options.start_count = line.start_count;
  options.host = host;
  options.pid = static_cast<std::uint64_t>(getpid());
  options.life = life;
  options.config = job_entries(config);
  options.heartbeat_interval = config.cluster.heartbeat_interval;
  options.heartbeat_timeout = config.cluster.heartbeat_timeout;
  options.connect_timeout = config.cluster.connect_timeout;
  return options;
}

}  // namespace parley

// What the operator decided, typed: one struct a section, one member a key, under the key's own name. This is the value
// that main reads once and takes apart into the small option structs of each part; nothing below the edge sees it.
//
// The initializers here are the defaults; keys.cc says everything else about a key (unit, bounds, help, when it has an
// effect). Durations are seconds in files and flags.
//
// Invariant (settings.h keeps it): a key that has no effect in the chosen mode holds its default, whatever the file
// said, so that a reader of a member never has to ask for the mode first.
#pragma once

#include "common/base/instant.h"
#include "common/config/choices.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace parley {

// Where cluster.coordinator leaves the port open (0), a process that the launcher started is told which port was taken;
// one that was started by hand uses this one.
inline constexpr std::uint16_t kDefaultCoordinatorPort = 7070;

struct Config {
  struct Cluster {
    std::int64_t servers = 2;
    std::int64_t workers = 2;
    std::string coordinator = "127.0.0.1:0";
    std::string bind = "127.0.0.1";
    std::string advertise;
    std::int64_t data_port = 0;
    std::string job;
    Duration start_timeout = std::chrono::seconds(60);
    Duration connect_timeout = std::chrono::seconds(30);
    Duration heartbeat_interval = std::chrono::milliseconds(500);
    Duration heartbeat_timeout = std::chrono::seconds(5);
    Duration collective_timeout = std::chrono::seconds(30);
  };
  struct Server {
    std::int64_t shards = 1;
    std::int64_t slice_bytes = 1 << 20;
  };
  struct Worker {
    std::int64_t threads = 1;
    std::string device = "auto";
  };
  struct Model {
    ModelType type = ModelType::mlp;
    std::vector<std::int64_t> hidden = {1024, 1024};
  };
  struct Data {
    DataKind kind = DataKind::mnist;
    std::string dir = "data/mnist";
    DataSplit split = DataSplit::static_split;
  };
  struct Train {
    std::int64_t epochs = 20;
    std::int64_t max_steps = 0;
    Duration max_seconds = Duration::zero();
    double target_accuracy = 0;
    std::int64_t batch_size = 64;
    std::int64_t global_batch = 0;
    std::int64_t seed = 1;
    std::int64_t eval_batch = 500;
  };
  struct Optimizer {
    OptimizerName name = OptimizerName::sgd;
    double learning_rate = 0.05;
    double momentum = 0;
    bool nesterov = false;
    double weight_decay = 0;
    std::vector<std::string> no_decay;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;  // adagrad: 1e-10, as in torch.optim (keys.cc)
    double alpha = 0.99;
    Schedule schedule = Schedule::constant;
    std::int64_t warmup_steps = 0;
    std::int64_t step_every = 1000;
    double step_gamma = 0.1;
    double final_learning_rate = 0;
  };
  struct Sync {
    SyncMode mode = SyncMode::bsp;
    std::int64_t staleness = 3;
  };
  struct Metrics {
    std::int64_t every_steps = 1;
  };
  struct Launch {
    Duration grace_seconds = std::chrono::seconds(10);
  };
  struct Debug {
    std::int64_t slow_rank = -1;
    double slow_factor = 10;
  };

  Cluster cluster;
  Server server;
  Worker worker;
  Model model;
  Data data;
  Train train;
  Optimizer optimizer;
  Sync sync;
  Metrics metrics;
  Launch launch;
  Debug debug;
};

// True in the modes where servers hold the weights: bsp, ssp, asp.
bool uses_servers(const Config& config);
// True in every mode in which processes talk to each other, i.e. all but none.
bool uses_network(const Config& config);
// Processes of each role that the mode runs: no server in allreduce and none, one worker in none.
std::int64_t server_count(const Config& config);
std::int64_t worker_count(const Config& config);
// Samples of one full step over all workers; in `none` the one worker takes them all.
std::int64_t global_batch(const Config& config);

}  // namespace parley

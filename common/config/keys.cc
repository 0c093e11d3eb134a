#include "common/config/keys.h"

#include "common/config/key_builder.h"
#include "common/config/syntax.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley {
namespace {

constexpr std::int64_t kMaxProcesses = 1024;  // of a role
constexpr std::int64_t kMaxShards = 64;       // of a server
constexpr std::int64_t kMaxPort = 65535;
constexpr std::int64_t kMaxSliceBytes = 64 << 20;
constexpr std::int64_t kMaxBatch = 1 << 20;
constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
constexpr std::int64_t kMaxWidth = 65536;
constexpr std::size_t kMaxLayers = 64;
constexpr std::size_t kMaxPatterns = 256;
constexpr std::size_t kMaxJobName = 128;
constexpr double kDay = 86400;
constexpr double kYear = 365 * kDay;

bool needs_ssp(const Config& c) { return c.sync.mode == SyncMode::ssp; }
bool needs_ssp_or_asp(const Config& c) { return needs_ssp(c) || c.sync.mode == SyncMode::asp; }
bool needs_allreduce(const Config& c) { return c.sync.mode == SyncMode::allreduce; }
bool needs_mlp(const Config& c) { return c.model.type == ModelType::mlp; }
bool needs_batch_size(const Config& c) { return c.train.global_batch == 0; }
bool needs_slow_rank(const Config& c) { return uses_network(c) && c.debug.slow_rank >= 0; }
bool needs_sgd(const Config& c) { return c.optimizer.name == OptimizerName::sgd; }
bool needs_rmsprop(const Config& c) { return c.optimizer.name == OptimizerName::rmsprop; }
bool needs_momentum(const Config& c) { return needs_sgd(c) || needs_rmsprop(c); }
bool needs_adam(const Config& c) {
  return c.optimizer.name == OptimizerName::adam || c.optimizer.name == OptimizerName::adamw;
}
bool needs_epsilon(const Config& c) { return !needs_sgd(c); }
bool needs_decay(const Config& c) { return c.optimizer.weight_decay > 0; }
bool needs_step(const Config& c) { return c.optimizer.schedule == Schedule::step; }
bool needs_cosine(const Config& c) { return c.optimizer.schedule == Schedule::cosine; }

const Condition kWithServers{uses_servers, "with sync.mode = bsp, ssp or asp", {"sync.mode"}};
const Condition kWithNetwork{uses_network, "with a sync.mode other than none", {"sync.mode"}};

std::optional<std::string> check_host(const std::string& text) {
  auto host = parse_host(text);
  if (!host) return host.error().message;
  return std::nullopt;
}

std::optional<std::string> check_advertised(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (is_wildcard(parse_host(text).value_or(""))) return "an address that peers can connect to";
  return check_host(text);
}

std::optional<std::string> check_coordinator(const std::string& text) {
  auto address = parse_host_port(text);
  if (!address) return address.error().message;
  if (is_wildcard(address->host)) return "an address that peers can connect to";
  return std::nullopt;
}

std::optional<std::string> check_device(const std::string& text) {
  auto device = parse_device(text);
  if (!device) return device.error().message;
  return std::nullopt;
}

std::optional<std::string> check_job(const std::string& text) {
  if (text.size() > kMaxJobName) return "a name of at most 128 bytes";
  return std::nullopt;
}

std::optional<std::string> check_not_empty(const std::string& text) {
  if (text.empty()) return "a text that is not empty";
  return std::nullopt;
}

void add_cluster(std::vector<Key>& list) {
  using S = Config::Cluster;
  SectionBuilder<S> section("cluster", &Config::cluster, list);
  section.key("servers", &S::servers)
      .integers(1, kMaxProcesses)
      .only(kWithServers)
      .help("Number of parameter servers. Server 0 also runs the coordinator.");
  section.key("workers", &S::workers)
      .integers(1, kMaxProcesses)
      .help(
          "Number of workers. With sync.mode = none it counts only for the size of the global "
          "batch, which the one worker then takes alone.");
  section.key("coordinator", &S::coordinator)
      .process()
      .syntax(check_coordinator, "HOST:PORT")
      .only(kWithNetwork)
      .help(fmt::format("HOST:PORT of the coordinator, where every process registers. With port 0 the "
                        "launcher takes a free port, and a process started by hand takes port {}.",
                        kDefaultCoordinatorPort));
  section.key("bind", &S::bind)
      .process()
      .syntax(check_host, "a host name or address")
      .only(kWithNetwork)
      .help("Address that this process listens on. One beyond this host needs --insecure.");
  section.key("advertise", &S::advertise)
      .process()
      .syntax(check_advertised, "a host name or address, or empty")
      .only(kWithNetwork)
      .help(
          "Address that peers use to connect to this process. Empty: the bind address, or this "
          "host's own address where that is a wildcard.");
  section.key("data_port", &S::data_port)
      .process()
      .integers(0, kMaxPort)
      .only(kWithServers)
      .help(
          "First TCP port of this server's shards: shard k listens on port + k. 0: any free port "
          "for each.");
  section.key("job", &S::job)
      .syntax(check_job, "any name of at most 128 bytes")
      .only(kWithNetwork)
      .help("Name of the job. Processes of jobs with different names refuse each other.");
  section.key("start_timeout", &S::start_timeout)
      .process()
      .numbers(0.1, kDay)
      .only(kWithNetwork)
      .help(
          "The job ends where not every process has registered within this time; the message says "
          "who is missing.");
  section.key("connect_timeout", &S::connect_timeout)
      .process()
      .numbers(0.1, kDay)
      .only(kWithNetwork)
      .help("A process ends where a peer's address does not answer within this time.");
  section.key("heartbeat_interval", &S::heartbeat_interval)
      .numbers(0.01, 60)
      .only(kWithNetwork)
      .help("Time between two signs of life of a process.");
  section.key("heartbeat_timeout", &S::heartbeat_timeout)
      .numbers(0.05, 3600)
      .only(kWithNetwork)
      .help(
          "A process that was silent for so long counts as lost. More than twice "
          "cluster.heartbeat_interval.");
  section.key("collective_timeout", &S::collective_timeout)
      .numbers(0.1, kDay)
      .only({needs_allreduce, "with sync.mode = allreduce", {"sync.mode"}})
      .help("A worker ends where an all-reduce does not complete within this time.");
}

void add_server_and_worker(std::vector<Key>& list) {
  using S = Config::Server;
  SectionBuilder<S> server("server", &Config::server, list);
  server.key("shards", &S::shards)
      .integers(1, kMaxShards)
      .only(kWithServers)
      .help("Shards of a server. Each has a thread, a socket and its part of the parameters.");
  server.key("slice_bytes", &S::slice_bytes)
      .integers(64, kMaxSliceBytes, 64)
      .unit("bytes")
      .only(kWithNetwork)
      .help(
          "Largest piece in which parameters and gradients are placed and travel; the bucket of "
          "an all-reduce.");

  using W = Config::Worker;
  SectionBuilder<W> worker("worker", &Config::worker, list);
  worker.key("threads", &W::threads)
      .integers(1, 256)
      .unit("threads")
      .help("Threads that compute in each worker. Another number changes the result's last bits.");
  worker.key("device", &W::device)
      .process()
      .syntax(check_device, "auto, cpu or cuda:N")
      .help(
          "Where a worker computes: auto (the first GPU where one is usable, else the CPU), cpu, "
          "or cuda:N.");
}

void add_model_and_data(std::vector<Key>& list) {
  using M = Config::Model;
  SectionBuilder<M> model("model", &Config::model, list);
  model.key("type", &M::type)
      .help(
          "The network: mlp (fully connected layers with ReLU) or lenet5 (two convolutions and "
          "three "
          "fully connected layers).");
  model.key("hidden", &M::hidden)
      .integers(1, kMaxWidth)
      .at_most(kMaxLayers)
      .unit("units")
      .only({needs_mlp, "with model.type = mlp", {"model.type"}})
      .help("Widths of the hidden layers, from input to output. []: no hidden layer.");

  using D = Config::Data;
  SectionBuilder<D> data("data", &Config::data, list);
  data.key("kind", &D::kind).help("Kind of data set: mnist (images and labels in IDX files, plain or .gz).");
  data.key("dir", &D::dir)
      .process()
      .syntax(check_not_empty, "a path")
      .help("Folder of the data set's files; a relative path counts from the working directory.");
  data.key("split", &D::split)
      .only({needs_ssp_or_asp, "with sync.mode = ssp or asp", {"sync.mode"}})
      .help(
          "How an epoch's samples come to the workers: static (a fixed part for each) or dynamic "
          "(a batch to whoever asks next, so that a slow worker holds nobody up). The other modes "
          "split statically.");
}

void add_train(std::vector<Key>& list) {
  using S = Config::Train;
  SectionBuilder<S> section("train", &Config::train, list);
  section.key("epochs", &S::epochs)
      .integers(0, 1'000'000)
      .unit("epochs")
      .help("Passes over the training set. 0: write and evaluate the initial weights only.");
  section.key("max_steps", &S::max_steps)
      .integers(0, kMaxSteps)
      .unit("steps")
      .help("Stop after so many steps; schedules still span train.epochs. 0: no limit.");
  section.key("max_seconds", &S::max_seconds).numbers(0, kYear).help("Stop after so much training time. 0: no limit.");
  section.key("target_accuracy", &S::target_accuracy)
      .numbers(0, 1)
      .help("Stop once an epoch's evaluation reaches this share of right answers. 0: never.");
  section.key("batch_size", &S::batch_size)
      .integers(1, kMaxBatch)
      .unit("samples")
      .only({needs_batch_size, "with train.global_batch = 0", {"train.global_batch"}})
      .help("Samples of a worker's step.");
  section.key("global_batch", &S::global_batch)
      .integers(0, kMaxBatch)
      .unit("samples")
      .help(
          "Samples of a step over all workers, shared out as evenly as they go (a rank may get "
          "none). 0: train.batch_size times cluster.workers.");
  section.key("seed", &S::seed)
      .integers(0, INT64_MAX)
      .help("Seed of the initial weights, of the batch order and of every other random draw.");
  section.key("eval_batch", &S::eval_batch)
      .integers(1, kMaxBatch)
      .unit("samples")
      .help("Samples of one forward pass in evaluation.");
}

void add_optimizer(std::vector<Key>& list) {
  using S = Config::Optimizer;
  SectionBuilder<S> section("optimizer", &Config::optimizer, list);
  section.key("name", &S::name).help("The update rule; each computes what torch.optim's does.");
  section.key("learning_rate", &S::learning_rate).above(0, 1000).help("Learning rate before warm-up and schedule.");
  section.key("momentum", &S::momentum)
      .below(0, 1)
      .only({needs_momentum, "with optimizer.name = sgd or rmsprop", {"optimizer.name"}})
      .help("Factor of the momentum. 0: none.");
  section.key("nesterov", &S::nesterov)
      .only({needs_sgd, "with optimizer.name = sgd", {"optimizer.name"}})
      .help("Nesterov's momentum instead of the plain one; needs optimizer.momentum above 0.");
  section.key("weight_decay", &S::weight_decay)
      .numbers(0, 1000)
      .help(
          "Factor of the weight decay: decoupled from the gradient in adamw, added to the gradient "
          "in the others.");
  section.key("no_decay", &S::no_decay)
      .at_most(kMaxPatterns)
      .syntax(check_not_empty, "patterns")
      .only({needs_decay, "with optimizer.weight_decay above 0", {"optimizer.weight_decay"}})
      .help(
          "Patterns (* and ? as in a shell) of the names of tensors without weight decay; they "
          "form a parameter group of their own. Example: [\"*.bias\"].");
  const Condition adam{needs_adam, "with optimizer.name = adam or adamw", {"optimizer.name"}};
  section.key("beta1", &S::beta1).below(0, 1).only(adam).help("Decay of the running mean of the gradient.");
  section.key("beta2", &S::beta2).below(0, 1).only(adam).help("Decay of the running mean of the squared gradient.");
  section.key("epsilon", &S::epsilon)
      .above(0, 1)
      .only({needs_epsilon, "with optimizer.name = adam, adamw, adagrad or rmsprop", {"optimizer.name"}})
      .derived("1e-10 with adagrad",
               [](Config& c) {
                 if (c.optimizer.name == OptimizerName::adagrad) c.optimizer.epsilon = 1e-10;
               })
      .help("Added to the denominator, against division by zero.");
  section.key("alpha", &S::alpha)
      .below(0, 1)
      .only({needs_rmsprop, "with optimizer.name = rmsprop", {"optimizer.name"}})
      .help("Decay of the running mean of the squared gradient.");
}

void add_schedule(std::vector<Key>& list) {
  using S = Config::Optimizer;
  SectionBuilder<S> section("optimizer", &Config::optimizer, list);
  section.key("schedule", &S::schedule)
      .help(
          "Course of the learning rate after the warm-up: constant, step (multiplied by "
          "optimizer.step_gamma every optimizer.step_every steps) or cosine (half a cosine wave "
          "down to optimizer.final_learning_rate at the end of train.epochs).");
  section.key("warmup_steps", &S::warmup_steps)
      .integers(0, kMaxSteps)
      .unit("steps")
      .help("Steps in which the learning rate rises linearly to its full value. 0: none.");
  const Condition step{needs_step, "with optimizer.schedule = step", {"optimizer.schedule"}};
  section.key("step_every", &S::step_every)
      .integers(1, kMaxSteps)
      .unit("steps")
      .only(step)
      .help("Steps between two drops of the learning rate.");
  section.key("step_gamma", &S::step_gamma).above(0, 1).only(step).help("Factor of each drop of the learning rate.");
  section.key("final_learning_rate", &S::final_learning_rate)
      .numbers(0, 1000)
      .only({needs_cosine, "with optimizer.schedule = cosine", {"optimizer.schedule"}})
      .help("Learning rate at the end; at most optimizer.learning_rate.");
}

void add_sync_and_rest(std::vector<Key>& list) {
  using S = Config::Sync;
  SectionBuilder<S> sync("sync", &Config::sync, list);
  sync.key("mode", &S::mode)
      .help(
          "bsp: all workers step together. ssp: a worker may lead the slowest by sync.staleness "
          "steps. asp: nobody waits. allreduce: no servers, the workers share their gradients. "
          "none: one worker alone, no network.");
  sync.key("staleness", &S::staleness)
      .integers(0, 1'000'000)
      .unit("steps")
      .only({needs_ssp, "with sync.mode = ssp", {"sync.mode"}})
      .help("Steps by which a worker may lead the slowest one; with 0, ssp is bsp.");

  SectionBuilder<Config::Metrics> metrics("metrics", &Config::metrics, list);
  metrics.key("every_steps", &Config::Metrics::every_steps)
      .process()
      .integers(0, kMaxSteps)
      .unit("steps")
      .help("Steps between two lines of a worker in metrics.jsonl. 0: no lines.");

  SectionBuilder<Config::Launch> launch("launch", &Config::launch, list);
  launch.key("grace_seconds", &Config::Launch::grace_seconds)
      .process()
      .numbers(0, 3600)
      .help("Time that the launcher gives a process to end by itself before it kills it.");

  using D = Config::Debug;
  SectionBuilder<D> debug("debug", &Config::debug, list);
  debug.key("slow_rank", &D::slow_rank)
      .integers(-1, kMaxProcesses - 1)
      .only(kWithNetwork)
      .help("Rank of a worker that is slowed down, to see a sync mode meet a straggler. -1: none.");
  debug.key("slow_factor", &D::slow_factor)
      .numbers(1, 1000)
      .only({needs_slow_rank,
             "with debug.slow_rank set and a sync.mode other than none",
             {"debug.slow_rank", "sync.mode"}})
      .help("The slowed worker's steps take so many times longer.");
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> list = [] {
    std::vector<Key> made;
    add_cluster(made);
    add_server_and_worker(made);
    add_model_and_data(made);
    add_train(made);
    add_optimizer(made);
    add_schedule(made);
    add_sync_and_rest(made);
    return made;
  }();
  return list;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> list = {
      {"cluster", "Who takes part, where they meet, and how long they wait for each other"},
      {"server", "Parameter servers"},
      {"worker", "Workers"},
      {"model", "The network that is trained"},
      {"data", "The data that it is trained on"},
      {"train", "How long and on how much at a time"},
      {"optimizer", "The update rule and the course of its learning rate"},
      {"sync", "How the workers' steps meet"},
      {"metrics", "What is recorded"},
      {"launch", "What the launcher behind scripts/run does"},
      {"debug", "For experiments"},
  };
  return list;
}

const Key* find_key(std::string_view name) {
  const auto& list = keys();
  const auto at = std::find_if(list.begin(), list.end(), [&](const Key& k) { return k.name == name; });
  return at == list.end() ? nullptr : &*at;
}

std::size_t index_of(const Key& key) { return static_cast<std::size_t>(&key - keys().data()); }

}  // namespace parley

#include "common/config/config.h"

namespace parley {

bool uses_servers(const Config& config) {
  const SyncMode mode = config.sync.mode;
  return mode == SyncMode::bsp || mode == SyncMode::ssp || mode == SyncMode::asp;
}

bool uses_network(const Config& config) { return config.sync.mode != SyncMode::none; }

std::int64_t server_count(const Config& config) { return uses_servers(config) ? config.cluster.servers : 0; }

std::int64_t worker_count(const Config& config) { return uses_network(config) ? config.cluster.workers : 1; }

std::int64_t global_batch(const Config& config) {
  if (config.train.global_batch > 0) return config.train.global_batch;
  return config.train.batch_size * config.cluster.workers;
}

}  // namespace parley

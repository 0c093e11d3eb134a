#include "worker/placement_page.h"

#include "common/layout/placement.h"
#include "common/process/job_options.h"

#include <nlohmann/json.hpp>

namespace parley {
namespace {

nlohmann::ordered_json servers_page(const Config& config, const Placement& placement) {
  const auto shards = static_cast<std::uint32_t>(config.server.shards);
  const std::uint64_t copies =
      2 + slot_count(optimizer_options(config)) + 2 * static_cast<std::uint64_t>(worker_count(config));
  nlohmann::ordered_json servers = nlohmann::ordered_json::array();
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(server_count(config)); ++rank) {
    std::uint64_t bytes = 0;
    std::uint64_t slices = 0;
    for (std::uint32_t shard = rank * shards; shard < (rank + 1) * shards; ++shard) {
      bytes += placement.bytes(ShardId(shard));
      slices += placement.slices(ShardId(shard)).size();
    }
    servers.push_back({{"rank", rank}, {"bytes", bytes}, {"slices", slices}, {"memory_bytes", bytes * copies}});
  }
  return servers;
}

}  // namespace

std::string placement_page(const Config& config, const Layout& layout) {
  nlohmann::ordered_json page;
  page["tensors"] = nlohmann::ordered_json::array();
  for (const TensorSpec& tensor : layout.tensors())
    page["tensors"].push_back(
        {{"name", tensor.name}, {"shape", tensor.shape}, {"bytes", tensor.element_count() * sizeof(float)}});
  page["slices"] = layout.slice_count();
  page["bytes"] = layout.arena_count() * sizeof(float);
  page["servers"] = nlohmann::ordered_json::array();
  if (uses_servers(config)) {
    const Placement placement(layout, static_cast<std::uint32_t>(server_count(config) * config.server.shards));
    page["servers"] = servers_page(config, placement);
    page["skew"] = placement.skew();  // null where a shard owns nothing
  }
  return page.dump(2);
}

}  // namespace parley

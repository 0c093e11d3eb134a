#include "worker/collective/gpu_claim.h"

#include "common/base/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley {

// Four strings, each ended by a zero byte.
std::vector<std::byte> encode(const GpuClaim& claim) {
  std::vector<std::byte> bytes;
  for (const std::string* field : {&claim.host, &claim.uuid, &claim.device, &claim.problem}) {
    for (const char c : *field) bytes.push_back(static_cast<std::byte>(c));
    bytes.push_back(std::byte{0});
  }
  return bytes;
}

GpuClaim decode_gpu_claim(std::span<const std::byte> bytes) {
  GpuClaim claim;
  auto at = bytes.begin();
  for (std::string* field : {&claim.host, &claim.uuid, &claim.device, &claim.problem}) {
    const auto end = std::find(at, bytes.end(), std::byte{0});
    if (end == bytes.end()) {
      throw RunError(fmt::format("a GPU claim of {} bytes is cut short", bytes.size()));
    }
    for (; at != end; ++at) field->push_back(static_cast<char>(*at));
    ++at;
  }
  return claim;
}

std::optional<std::string> find_gpu_conflict(std::span<const GpuClaim> claims) {
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    if (!claims[rank].problem.empty()) {
      return fmt::format(
          "NCCL all-reduce: worker {} on host {} cannot use {}: {}; with worker.device = cpu on "
          "all "
          "workers Gloo does it without GPUs",
          rank, claims[rank].host, claims[rank].device, claims[rank].problem);
    }
  }
  for (std::size_t second = 0; second < claims.size(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      if (claims[first].uuid != claims[second].uuid) continue;
      return fmt::format(
          "NCCL all-reduce: workers {} and {} both use {} of host {} (GPU {}), and NCCL needs a "
          "GPU "
          "for each worker; give each its own by worker.device, run fewer workers, or set "
          "worker.device = cpu on all of them",
          first, second, claims[second].device, claims[second].host, claims[second].uuid);
    }
  }
  return std::nullopt;
}

std::vector<GpuClaim> exchange_gpu_claims(RendezvousStore& store, const std::string& key_prefix, Rank rank,
                                          std::uint32_t world_size, const GpuClaim& ours, Duration timeout) {
  const auto key = [&](std::uint32_t r) { return fmt::format("{}gpu/{}", key_prefix, r); };
  store.set(key(rank.value), encode(ours));
  std::vector<GpuClaim> claims;
  for (std::uint32_t r = 0; r < world_size; ++r) {
    claims.push_back(r == rank.value ? ours : decode_gpu_claim(store.get(key(r), timeout)));
  }
  return claims;
}

}  // namespace parley

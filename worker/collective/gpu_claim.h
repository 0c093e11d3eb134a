// Which GPU each rank of an NCCL group means to use, told to all of them before NCCL is started: NCCL's own answer to
// two ranks on one GPU, or to none, is an obscure system error on some ranks and a hang on the others.
//
// Torch-free and CUDA-free. Thread rule: pure, but exchange_gpu_claims, which blocks.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "worker/collective/collective.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

struct GpuClaim {
  std::string host;
  std::string uuid;     // the driver's name of the device (of the MIG instance, where there is one)
  std::string device;   // as the operator named it: "cuda:0"
  std::string problem;  // why this rank has no usable device; empty: it has one

  bool operator==(const GpuClaim&) const = default;
};

std::vector<std::byte> encode(const GpuClaim& claim);
// Throws RunError for bytes that encode() did not make.
GpuClaim decode_gpu_claim(std::span<const std::byte> bytes);

// One line that says which ranks cannot work together and why, the same on every rank; nothing where all is well.
// `claims` in rank order.
std::optional<std::string> find_gpu_conflict(std::span<const GpuClaim> claims);

// Publishes ours, waits for everybody's and returns them in rank order. Throws RunError where one does not come in
// time.
std::vector<GpuClaim> exchange_gpu_claims(RendezvousStore& store, const std::string& key_prefix, Rank rank,
                                          std::uint32_t world_size, const GpuClaim& ours, Duration timeout);

}  // namespace parley

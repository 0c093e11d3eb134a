// The Collective over NCCL: one GPU a rank, one stream. Values may lie in device memory, where the sum is made in
// place, or in host memory (pinned is faster), which goes through a buffer on the device and comes back.
//
// The constructor tells all ranks which GPU each means to use and refuses what NCCL cannot do, then meets the others; a
// world of one rank uses its GPU's name only. Values in device memory must be complete when an operation is called (the
// stream that made them synchronized), and are complete when it returns. One thread at a time; NCCL runs more of its
// own.
//
// Invariants
//  1. Every wait ends within options.timeout: the communicator does not block, is asked for errors while an operation
//     runs, and is aborted at the deadline.
//  2. After a failed operation the communicator is gone, so that one rank's error ends the whole group.
//  3. NCCL's own sockets are kept to the interface that has options.host, unless the operator's environment names
//     another (NCCL_SOCKET_IFNAME); left alone it would prefer one that is not loopback.
//
// The header is free of CUDA and NCCL; built with PARLEY_WITH_CUDA only.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "worker/collective/collective.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct ncclComm;
struct CUstream_st;

namespace parley {

struct NcclOptions {
  Rank rank;
  std::uint32_t world_size = 1;
  int device = 0;  // N of cuda:N
  std::string host = "127.0.0.1";
  // In front of every key in the store: one group of one job and generation.
  std::string key_prefix;
  Duration timeout{};  // of each operation; positive
};

class NcclCollective final : public Collective {
 public:
  // Throws UsageError, the same on all ranks, where a rank has no such GPU or two ranks use one; for a host that is not
  // this machine's; RunError where not all ranks come in time. The store is used here only.
  NcclCollective(const NcclOptions& options, RendezvousStore& store);
  ~NcclCollective() override;
  NcclCollective(const NcclCollective&) = delete;
  NcclCollective& operator=(const NcclCollective&) = delete;

  Rank rank() const override { return options_.rank; }
  std::uint32_t world_size() const override { return options_.world_size; }
  void all_reduce(std::span<float> values) override;
  void broadcast(std::span<std::byte> bytes, Rank root) override;
  void barrier() override;

 private:
  class Operation;

  void claim_device(RendezvousStore& store);
  void connect(RendezvousStore& store);
  void reserve_staging(std::size_t bytes);
  template <class Start>
  void run(std::string_view name, std::span<std::byte> bytes, Start&& start);
  void await_communicator(const Operation& operation);
  void await_stream(const Operation& operation);
  [[noreturn]] void fail(const Operation& operation, std::string_view reason);

  const NcclOptions options_;
  ncclComm* communicator_ = nullptr;  // null in a world of one, and after a failure
  CUstream_st* stream_ = nullptr;
  std::byte* staging_ = nullptr;  // device memory
  std::size_t staging_bytes_ = 0;
  std::string failure_;  // of the first failed operation
};

}  // namespace parley

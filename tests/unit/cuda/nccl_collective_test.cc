// Without a GPU only the refusal can be tried; with one, a world of one and two ranks on one device; with two, sums.
#include "worker/collective/nccl_collective.h"

#include "common/base/error.h"
#include "tests/support/memory_collective.h"
#include "tests/support/shared_store.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace parley {
namespace {

using parley::testing::run_ranks;
using parley::testing::SharedStore;
using ::testing::AllOf;
using ::testing::HasSubstr;

int gpu_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

NcclOptions options(std::uint32_t rank, std::uint32_t world, int device) {
  NcclOptions o;
  o.rank = Rank(rank);
  o.world_size = world;
  o.device = device;
  o.key_prefix = "job/0/";
  o.timeout = std::chrono::seconds(30);
  return o;
}

std::string refusal(const NcclOptions& o, SharedStore& store) {
  try {
    NcclCollective nccl(o, store);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(NcclCollective, NoSuchGpuIsAUsageErrorThatAllRanksReport) {
  SharedStore store;
  std::array<std::string, 2> texts;
  run_ranks(2, [&](std::uint32_t rank) { texts[rank] = refusal(options(rank, 2, gpu_count()), store); });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("worker 0"), HasSubstr("CUDA device"), HasSubstr("worker.device = cpu")));
  EXPECT_EQ(texts[1], texts[0]);
}

TEST(NcclCollective, TwoRanksOnOneGpuAreRefusedBeforeNcclStarts) {
  if (gpu_count() < 1) GTEST_SKIP() << "needs a GPU";
  SharedStore store;
  std::array<std::string, 2> texts;
  run_ranks(2, [&](std::uint32_t rank) { texts[rank] = refusal(options(rank, 2, 0), store); });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("workers 0 and 1"), HasSubstr("cuda:0")));
  EXPECT_EQ(texts[1], texts[0]);
}

TEST(NcclCollective, AWorldOfOneChangesNothing) {
  if (gpu_count() < 1) GTEST_SKIP() << "needs a GPU";
  SharedStore store;
  NcclCollective nccl(options(0, 1, 0), store);
  std::vector<float> values{1.5F, -2.0F};
  nccl.all_reduce(values);
  nccl.barrier();
  EXPECT_EQ(values, (std::vector<float>{1.5F, -2.0F}));
}

TEST(NcclCollective, TwoGpusGiveTheRankOrderSumFromHostAndDeviceMemory) {
  if (gpu_count() < 2) GTEST_SKIP() << "needs two GPUs";
  SharedStore store;
  run_ranks(2, [&](std::uint32_t rank) {
    NcclCollective nccl(options(rank, 2, static_cast<int>(rank)), store);
    for (const std::size_t count : {0UL, 1UL, 3UL, 1'000'003UL}) {
      const std::vector<float> ours(count, rank == 0 ? 0.1F : 0.7F);
      const std::vector<float> sum(count, 0.1F + 0.7F);
      std::vector<float> host = ours;
      nccl.all_reduce(host);
      EXPECT_EQ(host, sum);

      void* memory = nullptr;
      ASSERT_EQ(cudaMalloc(&memory, count * sizeof(float) + 1), cudaSuccess);
      auto* device = static_cast<float*>(memory);
      cudaMemcpy(device, ours.data(), count * sizeof(float), cudaMemcpyHostToDevice);
      nccl.all_reduce({device, count});
      cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost);
      EXPECT_EQ(host, sum);
      cudaFree(device);
    }
    std::vector<std::byte> bytes(5, static_cast<std::byte>(rank + 1));
    nccl.broadcast(bytes, Rank(1));
    EXPECT_EQ(bytes, std::vector<std::byte>(5, std::byte{2}));
    nccl.barrier();
  });
}

}  // namespace
}  // namespace parley

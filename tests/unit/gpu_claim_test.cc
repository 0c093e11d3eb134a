#include "worker/collective/gpu_claim.h"

#include "common/base/error.h"
#include "tests/support/memory_collective.h"
#include "tests/support/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parley {
namespace {

using parley::testing::run_ranks;
using parley::testing::SharedStore;
using ::testing::AllOf;
using ::testing::HasSubstr;

GpuClaim claim(const std::string& uuid, const std::string& problem = "") {
  return {.host = "alpha", .uuid = uuid, .device = "cuda:0", .problem = problem};
}

TEST(GpuClaim, SurvivesTheStore) {
  const GpuClaim one = claim("GPU-1", "no driver");
  EXPECT_EQ(decode_gpu_claim(encode(one)), one);
  auto bytes = encode(one);
  bytes.pop_back();
  EXPECT_THROW(decode_gpu_claim(bytes), RunError);
}

TEST(GpuClaim, DifferentDevicesAreFine) {
  EXPECT_EQ(find_gpu_conflict(std::vector{claim("a"), claim("b"), claim("c")}), std::nullopt);
}

TEST(GpuClaim, TwoRanksOnOneDeviceAreNamedWithIt) {
  EXPECT_THAT(find_gpu_conflict(std::vector{claim("a"), claim("b"), claim("b")}).value(),
              AllOf(HasSubstr("workers 1 and 2"), HasSubstr("cuda:0"), HasSubstr("alpha"), HasSubstr("GPU b"),
                    HasSubstr("worker.device")));
}

TEST(GpuClaim, ARankWithoutADeviceIsNamedWithTheReason) {
  EXPECT_THAT(find_gpu_conflict(std::vector{claim("a"), claim("", "no driver")}).value(),
              AllOf(HasSubstr("worker 1 on host alpha"), HasSubstr("no driver"), HasSubstr("Gloo")));
}

TEST(GpuClaim, EveryRankLearnsAllClaims) {
  SharedStore store;
  run_ranks(3, [&](std::uint32_t rank) {
    const auto all =
        exchange_gpu_claims(store, "job/1/", Rank(rank), 3, claim(std::to_string(rank)), std::chrono::seconds(20));
    EXPECT_EQ(all, (std::vector{claim("0"), claim("1"), claim("2")}));
  });
}

TEST(GpuClaim, AMissingRankIsAnErrorThatNamesItsKey) {
  SharedStore store;
  try {
    exchange_gpu_claims(store, "job/1/", Rank(0), 2, claim("a"), std::chrono::milliseconds(1));
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("job/1/gpu/1"));
  }
}

}  // namespace
}  // namespace parley

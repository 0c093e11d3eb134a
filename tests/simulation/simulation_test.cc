// Whole clusters over many seeds: no promise is broken, what is rare does happen, and a run is a function of its seed.
#include "common/base/log.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace parley::simulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

std::string name_of(SyncPolicy policy) {
  return policy.staleness == SyncPolicy::kUnbounded ? "unbounded" : std::to_string(policy.staleness);
}

// run(), with the command that runs it again where a promise is broken.
RunResult checked(const Scenario& scenario) {
  log::set_threshold(log::Level::error);
  try {
    return run(scenario);
  } catch (const Violation& violation) {
    ADD_FAILURE() << violation.what() << "\n  " << scenario.describe() << "\n  again: simulate --seed " << scenario.seed
                  << " --seeds 1 --staleness " << name_of(scenario.sync);
    return {};
  }
}

bool same_weights(const RunResult& a, const RunResult& b) {
  if (a.weights.size() != b.weights.size()) return false;
  for (std::size_t tensor = 0; tensor < a.weights.size(); ++tensor) {
    if (a.weights[tensor].size() != b.weights[tensor].size()) return false;
    if (!a.weights[tensor].empty() &&
        std::memcmp(a.weights[tensor].data(), b.weights[tensor].data(), a.weights[tensor].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

class SimulationTest : public testing::TestWithParam<SyncPolicy> {};

// The marks at the end: in a number of the runs the rare things really happened.
TEST_P(SimulationTest, no_seed_breaks_a_promise) {
  const SyncPolicy policy = GetParam();
  std::uint64_t answers = 0;
  std::uint64_t repeats = 0;
  std::uint64_t late = 0;
  std::uint64_t ignored = 0;
  std::uint64_t clipped = 0;
  std::uint64_t skipped = 0;
  std::uint64_t stopped = 0;
  std::uint64_t at_the_bound = 0;
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const Scenario scenario = draw(seed, policy);
    const RunResult result = checked(scenario);
    answers += result.answers_checked;
    repeats += result.repeats > 0;
    late += result.late > 0;
    ignored += result.ignored > 0;
    clipped += scenario.clip_norm > 0 && result.answers_checked > 0;
    skipped += result.skipped > 0;
    stopped += scenario.stop_at.has_value();
    at_the_bound += result.lead_max == policy.staleness;
  }
  EXPECT_GT(answers, 50'000U);
  EXPECT_GT(repeats, 100U) << "runs in which a broken connection made a worker send again";
  EXPECT_GT(late, 10U) << "runs in which a shard dropped what came late from an old connection";
  EXPECT_GT(ignored, 0U) << "runs in which a worker dropped the answer to an older send";
  if (policy.gathers()) {
    EXPECT_GT(clipped, 100U) << "runs with a clock in two phases";
    EXPECT_GT(skipped, 10U) << "runs in which a clock that was not finite was dropped";
    EXPECT_GT(stopped, 50U) << "runs that were stopped early";
  } else if (policy.staleness != SyncPolicy::kUnbounded) {
    EXPECT_GT(at_the_bound, 50U) << "runs in which the lead came up to the bound, so the bound is tight";
  }
}

INSTANTIATE_TEST_SUITE_P(Staleness, SimulationTest,
                         testing::Values(SyncPolicy{0}, SyncPolicy{1}, SyncPolicy{3},
                                         SyncPolicy{SyncPolicy::kUnbounded}),
                         [](const auto& test) { return name_of(test.param); });

TEST(Simulation, the_same_seed_gives_the_same_run) {
  for (const SyncPolicy policy : {SyncPolicy{0}, SyncPolicy{3}}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const RunResult first = checked(draw(seed, policy));
      const RunResult second = checked(draw(seed, policy));
      EXPECT_EQ(first.fingerprint, second.fingerprint) << "seed " << seed;
      EXPECT_EQ(first.events, second.events);
      EXPECT_TRUE(same_weights(first, second));
      seen.insert(first.fingerprint);
    }
    EXPECT_EQ(seen.size(), 30U) << "other seeds give other runs";
  }
}

// bsp: the number of servers and shards and the order of the network change no bit of the result.
TEST(Simulation, bsp_does_not_depend_on_the_number_of_servers_and_shards) {
  for (const std::uint32_t workers : {2U, 3U})
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      Scenario scenario = draw(seed, {0});
      scenario.workers = workers;
      scenario.steps.assign(workers, 4 + seed % 3);
      scenario.slow_rank.reset();
      scenario.non_finite.reset();
      scenario.stop_at.reset();
      scenario.servers = 1;
      scenario.shards_per_server = 1;
      const RunResult expected = checked(scenario);
      for (const std::uint32_t servers : {1U, 2U, 3U, 5U})
        for (const std::uint32_t shards : {1U, 3U}) {
          scenario.servers = servers;
          scenario.shards_per_server = shards;
          scenario.resets = static_cast<std::uint32_t>(seed % 4);
          EXPECT_TRUE(same_weights(checked(scenario), expected)) << scenario.describe();
        }
    }
}

// With one worker there is nobody to wait for and nothing to average: every bound gives bsp's weights, bit for bit.
// (For staleness 0 and any number of workers run() itself compares with the sequential reference at every clock.)
TEST(Simulation, one_worker_alone_gets_the_same_weights_whatever_the_bound) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Scenario scenario = draw(seed, {0});
    scenario.workers = 1;
    scenario.steps.resize(1);
    scenario.slow_rank.reset();
    scenario.non_finite.reset();
    scenario.stop_at.reset();
    scenario.clip_norm = 0;
    scenario.skip_non_finite = false;
    const RunResult bsp = checked(scenario);
    compared += bsp.answers_checked;
    for (const std::uint64_t staleness : {std::uint64_t{1}, std::uint64_t{3}, SyncPolicy::kUnbounded}) {
      scenario.sync = {staleness};
      EXPECT_TRUE(same_weights(checked(scenario), bsp)) << scenario.describe();
    }
  }
  EXPECT_GT(compared, 500U);
}

}  // namespace
}  // namespace parley::simulation

// Runs the simulator over many seeds, or one again:  simulate [--seed S] [--seeds N] [--staleness S|unbounded]
#include "common/base/error.h"
#include "common/base/log.h"
#include "tests/simulation/sim_cluster.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace parley;
  std::uint64_t first = 0;
  std::uint64_t count = 1000;
  std::string staleness;
  CLI::App app("Simulates whole clusters on virtual time; a broken promise prints its seed");
  app.add_option("--seed", first, "first seed");
  app.add_option("--seeds", count, "how many seeds");
  app.add_option("--staleness", staleness,
                 "only this bound: a number, or 'unbounded' (default: 0, 1, 3 and unbounded)");
  CLI11_PARSE(app, argc, argv);
  log::set_threshold(log::Level::error);
  std::vector<SyncPolicy> policies = {{0}, {1}, {3}, {SyncPolicy::kUnbounded}};
  if (staleness == "unbounded") policies = {{SyncPolicy::kUnbounded}};
  if (!staleness.empty() && staleness != "unbounded") policies = {{std::stoull(staleness)}};
  std::uint64_t failures = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    for (const SyncPolicy policy : policies) {
      const auto scenario = simulation::draw(seed, policy);
      try {
        const auto result = simulation::run(scenario);
        if (count == 1)
          fmt::print("{}\n  {} events, {:.3f} simulated seconds, {} answers checked, {} repeats, lead at most {}\n",
                     scenario.describe(), result.events, result.seconds, result.answers_checked, result.repeats,
                     result.lead_max);
      } catch (const simulation::Violation& violation) {
        ++failures;
        fmt::print(
            "VIOLATION {}\n  {}\n  again: simulate --seed {} --seeds 1 --staleness {}\n", violation.what(),
            scenario.describe(), seed,
            policy.staleness == SyncPolicy::kUnbounded ? std::string("unbounded") : std::to_string(policy.staleness));
      }
    }
  fmt::print("{} seeds x {} modes, {} violations\n", count, policies.size(), failures);
  return failures == 0 ? kExitSuccess : kExitRunError;
}

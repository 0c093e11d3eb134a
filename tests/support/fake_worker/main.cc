// fake_worker: a worker without LibTorch, for tests of everything but models. It takes parley-worker's command line
// and, in the environment, FAKE_WORKER_PLAN=FILE (plan.h).
#include "common/base/error.h"
#include "common/process/program.h"
#include "tests/support/fake_worker/fake_worker_process.h"

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  return parley::run_program(parley::Role::worker, argc, argv, [](const parley::CommandLine& line) {
    const char* plan = std::getenv("FAKE_WORKER_PLAN");  // NOLINT(concurrency-mt-unsafe): before any thread is started
    if (plan == nullptr) throw parley::UsageError("FAKE_WORKER_PLAN: not set, expected the path of a plan");
    return parley::run_fake_worker(line, plan);
  });
}

// parley-worker: one worker of a job.
#include "common/process/program.h"
#include "worker/worker_process.h"

int main(int argc, char** argv) { return parley::run_program(parley::Role::worker, argc, argv, parley::run_worker); }

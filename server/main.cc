// parley-server: one parameter server of a job.
#include "common/process/program.h"
#include "server/server_process.h"

int main(int argc, char** argv) { return parley::run_program(parley::Role::server, argc, argv, parley::run_server); }

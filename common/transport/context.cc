#include "common/transport/context.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/transport/process_limits.h"

#include <fmt/format.h>
#include <zmq.h>

#include <cerrno>

#if defined(__SANITIZE_THREAD__)
// ZeroMQ is not built with ThreadSanitizer, which therefore cannot see how it orders its threads and takes every
// hand-over inside for a race. Our own code is watched all the same; where a frame passes to ZeroMQ and back it goes
// through atomics of ours (message_io.cc, wire/frame.h). NOLINTNEXTLINE(bugprone-reserved-identifier): the name that
// the sanitizer looks for.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so\nrace:libzmq.so\n"; }
#endif

namespace parley {
namespace {

// ZeroMQ's own default of 1023 is below what a server with thousands of peers needs; a slot costs some bytes.
constexpr int kSocketsMax = 32'768;

void* start(int io_threads) {
  // ZeroMQ aborts the process where a file descriptor is missing for one of its own threads, so this is looked at
  // first.
  require_open_files(open_files_needed({.contexts = 1, .io_threads = io_threads}), "ZeroMQ");
  void* context = zmq_ctx_new();
  if (context == nullptr) throw RunError(fmt::format("cannot start ZeroMQ: {}", zmq_strerror(errno)));
  PARLEY_CHECK(zmq_ctx_set(context, ZMQ_IO_THREADS, io_threads) == 0, "{} threads", io_threads);
  PARLEY_CHECK(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, kSocketsMax) == 0, "{}", zmq_strerror(errno));
  // Sockets forget what is unsent unless they say otherwise, so that an absent peer cannot hold up an exit.
  PARLEY_CHECK(zmq_ctx_set(context, ZMQ_BLOCKY, 0) == 0, "{}", zmq_strerror(errno));
  return context;
}

}  // namespace

Context::Context(int io_threads) : handle_(start(io_threads)) {}

Context::~Context() {
  while (zmq_ctx_term(handle_) != 0 && errno == EINTR) {
  }
}

void* Context::open(int type) {
  void* socket = zmq_socket(handle_, type);
  if (socket != nullptr) return socket;
  if (errno == EMFILE)
    throw RunError(
        fmt::format("cannot open another socket: {} files are allowed (ulimit -n) and {} sockets (limit of "
                    "ZeroMQ)",
                    open_file_limit(), kSocketsMax));
  throw RunError(fmt::format("cannot open a socket: {}", zmq_strerror(errno)));
}

std::string Context::unique_name() {
  return fmt::format("inproc://{}", names_.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace parley

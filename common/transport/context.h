// The process's share of ZeroMQ: its I/O threads and the limit on its sockets. A process has one for data and one for
// control, so that heartbeats never queue behind gradients.
//
// Thread rule: any thread may open sockets in it. It must outlive them: the destructor waits until all are closed and
// what they still lingered to send is sent or given up.
#pragma once

#include <atomic>
#include <string>

namespace parley {

class Context {
 public:
  // Throws RunError where ZeroMQ cannot start.
  explicit Context(int io_threads = 1);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // A new socket of a ZMQ_... type; closed by whoever asked for it. Throws RunError that names the limit that was
  // reached.
  void* open(int type);
  // An inproc address that nobody else uses.
  std::string unique_name();

 private:
  void* const handle_;
  std::atomic<unsigned> names_{0};
};

}  // namespace parley

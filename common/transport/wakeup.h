// An eventfd that ends the wait of another thread's Poller.
//
// Thread rule: notify() from any thread, clear() and fd() by the thread that waits. A notification stays until it is
// cleared, and many count as one.
#pragma once

namespace parley {

class Wakeup {
 public:
  // Throws RunError where no file descriptor is left.
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void notify();
  void clear();
  int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace parley

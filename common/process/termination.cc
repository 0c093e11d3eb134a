#include "common/process/termination.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace parley {
namespace {

// SIGUSR1 is the destructor's own word to the watcher.
constexpr int kCloseSignal = SIGUSR1;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, kCloseSignal);
  return set;
}

const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

[[noreturn]] void end_at_once(int signal) {
  log::flush();
  _exit(128 + signal);
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

}  // namespace

Termination::Termination(Duration grace) : grace_(grace) {
  // A peer that closes its socket is an error of that send, not the end of this process.
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Termination::~Termination() {
  closing_ = true;
  pthread_kill(watcher_.native_handle(), kCloseSignal);
  watcher_.join();
}

void Termination::on_signal(std::function<void(const char*)> end) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(end);
}

int Termination::run(const std::function<void()>& life) {
  try {
    life();
  } catch (const RunError& error) {
    if (signal_ == 0) throw;
    log::error("{}", error.what());
    return 128 + signal_;
  }
  return kExitSuccess;
}

void Termination::watch() {
  const sigset_t set = watched_signals();
  const timespec grace = to_timespec(grace_);
  while (!closing_) {
    const int first = signal_;
    const int signal = first == 0 ? sigwaitinfo(&set, nullptr) : sigtimedwait(&set, nullptr, &grace);
    if (closing_) return;
    if (first != 0 && (signal > 0 || errno == EAGAIN)) end_at_once(first);
    if (signal != SIGINT && signal != SIGTERM) continue;  // interrupted, or somebody else's SIGUSR1
    signal_ = signal;
    const std::lock_guard lock(mutex_);
    if (!end_) {
      log::warning("{}: ending at once", name_of(signal));
      end_at_once(signal);
    }
    log::warning("{}: ending the job", name_of(signal));
    end_(name_of(signal));
  }
}

}  // namespace parley

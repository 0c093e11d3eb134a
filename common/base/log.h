// The project's own logging and checking names. glog stands behind them, inside log.cc only: LibTorch's c10 defines
// LOG and CHECK macros too, and the two must never meet in one file.
//
// Thread rule: every function here may be called from any thread, but not from a ZeroMQ I/O thread's callback.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace parley::log {

enum class Level { info, warning, error };

// Once a process, before the first line: `who` ("server 0", "worker 1") stands in front of every line. Lines go to
// standard error.
void start(std::string_view who);
// Changes the name in front of the lines, once a rank was handed out.
void rename(std::string_view who);
// Lines below this level are left out (info: nothing is). For programs that run thousands of machines, like the
// simulator.
void set_threshold(Level level);
// Writes what is buffered.
void flush();

void write(Level level, std::string_view text, const char* file, int line);

// A format string that remembers where it was written (std::source_location is not in clang 14).
template <class... Args>
struct Text {
  template <class S>
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, so that a literal at the call site records its place.
  consteval Text(const S& s, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : format(s), file(f), line(l) {}
  fmt::format_string<Args...> format;
  const char* file;
  int line;
};

template <class... Args>
void info(Text<std::type_identity_t<Args>...> text, Args&&... args) {
  write(Level::info, fmt::format(text.format, std::forward<Args>(args)...), text.file, text.line);
}
template <class... Args>
void warning(Text<std::type_identity_t<Args>...> text, Args&&... args) {
  write(Level::warning, fmt::format(text.format, std::forward<Args>(args)...), text.file, text.line);
}
template <class... Args>
void error(Text<std::type_identity_t<Args>...> text, Args&&... args) {
  write(Level::error, fmt::format(text.format, std::forward<Args>(args)...), text.file, text.line);
}

// Prints the message with its place and aborts. For what only a fault in our own code can cause.
[[noreturn]] void fatal(std::string_view text, const char* file, int line);

}  // namespace parley::log

// PARLEY_CHECK(condition, "format", args...): kept in release builds.
#define PARLEY_CHECK(condition, ...)                                                                                \
  do {                                                                                                              \
    if (!(condition)) [[unlikely]]                                                                                  \
      ::parley::log::fatal(::fmt::format("check failed: {}: {}", #condition, ::fmt::format(__VA_ARGS__)), __FILE__, \
                           __LINE__);                                                                               \
  } while (false)

// Three kinds of failure, three mechanisms. What a peer can cause is a Result value; what the operator can cause (a
// config key, a port, a file) is one of the exceptions below, caught once in main; what only we can cause is a
// PARLEY_CHECK (log.h), kept in release builds.
#pragma once

#include <tl/expected.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace parley {

// A one-line account of what a peer did wrong: what was found, what was expected.
struct Error {
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string message) { return tl::unexpected<Error>(Error{std::move(message)}); }

// Usage or configuration is wrong: exit status 2. The message is one line (or one line a fault) that names the file,
// line or key, what was found and what was expected.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The run failed: exit status 1. The message is one line that names the role, rank, address or file at fault.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitRunError = 1;
inline constexpr int kExitUsage = 2;

}  // namespace parley

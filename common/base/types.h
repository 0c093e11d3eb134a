// Strong types for the ids and counts that travel through every layer. Two of them never mix by accident: a Clock is
// not a Version, a Rank is not a ShardId. Each wraps one integer, compares, hashes and prints like it.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace parley {

template <class Tag, class Integer>
struct Strong {
  using Value = Integer;
  Integer value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Integer v) : value(v) {}

  constexpr auto operator<=>(const Strong&) const = default;
  constexpr Strong& operator++() {
    ++value;
    return *this;
  }
  // The value `n` further on; counts (clocks, versions) use it, ids do not need it.
  constexpr Strong plus(Integer n) const { return Strong(static_cast<Integer>(value + n)); }
  constexpr Strong next() const { return plus(1); }
};

// Index of a worker among the workers, of a server among the servers (0-based).
using Rank = Strong<struct RankTag, std::uint32_t>;
// Index of a shard among all shards of all servers: server * shards_per_server + local index.
using ShardId = Strong<struct ShardIdTag, std::uint32_t>;
// Index of a slice in the layout (0-based, arena order).
using SliceId = Strong<struct SliceIdTag, std::uint32_t>;
// A worker's count of answered steps. A push of clock c carries the gradient of its step c (0-based).
using Clock = Strong<struct ClockTag, std::uint64_t>;
// A slice's count of applied updates; version 0 is the initial value.
using Version = Strong<struct VersionTag, std::uint64_t>;
// Bumped when the cluster rolls back; messages of a lower generation are dropped.
using Generation = Strong<struct GenerationTag, std::uint64_t>;
// One life of one process of a rank; 0 means "none given yet". The higher one is the living one.
using Incarnation = Strong<struct IncarnationTag, std::uint64_t>;
// Order of the messages that one incarnation of one process sends; the highest is the newest.
using Sequence = Strong<struct SequenceTag, std::uint64_t>;
// Names the job, so that two clusters that meet on one port refuse each other.
using JobId = Strong<struct JobIdTag, std::uint64_t>;

enum class Role : std::uint8_t { server = 0, worker = 1 };

inline const char* role_name(Role role) { return role == Role::server ? "server" : "worker"; }

}  // namespace parley

template <class Tag, class Integer>
struct std::hash<parley::Strong<Tag, Integer>> {
  std::size_t operator()(parley::Strong<Tag, Integer> s) const noexcept { return std::hash<Integer>{}(s.value); }
};

template <class Tag, class Integer>
struct fmt::formatter<parley::Strong<Tag, Integer>> : fmt::formatter<Integer> {
  template <class Context>
  auto format(parley::Strong<Tag, Integer> s, Context& context) const {
    return fmt::formatter<Integer>::format(s.value, context);
  }
};

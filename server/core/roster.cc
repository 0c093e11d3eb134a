#include "server/core/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley {

RosterEntry* Roster::find(Key key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

RosterEntry* Roster::find(Role role, Rank rank, Incarnation incarnation) {
  RosterEntry* entry = find({role, rank});
  return entry != nullptr && entry->incarnation == incarnation ? entry : nullptr;
}

std::optional<Roster::Key> Roster::find(Route route) const {
  for (const auto& [key, entry] : entries_)
    if (entry.route == route) return key;
  return std::nullopt;
}

std::optional<Rank> Roster::free_rank(Role role) const {
  for (std::uint32_t rank = 0; rank < expected(role); ++rank)
    if (!entries_.contains({role, Rank(rank)})) return Rank(rank);
  return std::nullopt;
}

RosterEntry& Roster::enter(Key key, std::uint64_t start_count) {
  Incarnation& highest = highest_[key];
  highest = Incarnation(std::max(highest.value, start_count) + 1);
  RosterEntry& entry = entries_[key];
  entry = RosterEntry();
  entry.incarnation = highest;
  return entry;
}

bool Roster::everybody_is_here() const { return entries_.size() == std::size_t{expected_[0]} + expected_[1]; }

std::string Roster::missing() const {
  std::string text;
  for (const Role role : {Role::server, Role::worker})
    for (std::uint32_t rank = 0; rank < expected(role); ++rank)
      if (!entries_.contains({role, Rank(rank)}))
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", role_name(role), rank);
  return text;
}

}  // namespace parley

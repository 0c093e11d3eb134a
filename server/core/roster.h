// Who takes part: one entry a registered process, found by (role, rank) or by connection. A plain value owned by the
// coordinator; it also remembers the highest incarnation of every rank, so that none is ever handed out twice.
#pragma once

#include "common/base/instant.h"
#include "common/base/types.h"
#include "common/control/registration.h"
#include "common/wire/outbox.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parley {

struct RosterEntry {
  Route route;
  Sequence registered;  // of the newest Register: a lower one comes late from an old connection
  Incarnation incarnation;
  std::uint64_t life = 0;
  std::string host;
  std::uint64_t pid = 0;
  std::vector<std::string> endpoints;
  Instant last_heard;
  std::optional<Instant> unreachable_since;  // its connection is gone and no new one spoke
  bool finished = false;
  std::optional<Stats> done;
};

class Roster {
 public:
  using Key = std::pair<Role, Rank>;

  Roster(std::uint32_t servers, std::uint32_t workers) : expected_{servers, workers} {}

  std::uint32_t expected(Role role) const { return expected_[static_cast<std::size_t>(role)]; }
  RosterEntry* find(Key key);
  // The entry that speaks for this (role, rank, incarnation); null for anybody else.
  RosterEntry* find(Role role, Rank rank, Incarnation incarnation);
  std::optional<Key> find(Route route) const;
  // The lowest rank of this role without an entry.
  std::optional<Rank> free_rank(Role role) const;
  // Enters a process and gives it an incarnation above every one before and above its launcher's start count.
  RosterEntry& enter(Key key, std::uint64_t start_count);
  void remove(Key key) { entries_.erase(key); }

  bool everybody_is_here() const;
  // "server 1, worker 0": the expected ones without an entry.
  std::string missing() const;
  std::map<Key, RosterEntry>& entries() { return entries_; }
  const std::map<Key, RosterEntry>& entries() const { return entries_; }

 private:
  std::uint32_t expected_[2];
  std::map<Key, RosterEntry> entries_;
  std::map<Key, Incarnation> highest_;
};

}  // namespace parley

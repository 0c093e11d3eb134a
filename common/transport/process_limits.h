// The operating system's limits that a process with many connections meets.
#pragma once

#include <cstdint>
#include <string_view>

namespace parley {

// What a process is going to open beside its standard streams.
struct SocketPlan {
  std::uint64_t contexts = 0;
  std::int64_t io_threads = 0;  // of all contexts
  std::uint64_t routers = 0;
  std::uint64_t dealers = 0;
  std::uint64_t mailboxes = 0;
  std::uint64_t accepted = 0;  // connections of all routers
};

// File descriptors that `plan` takes, with room for libraries, data files and a reconnection.
std::uint64_t open_files_needed(const SocketPlan& plan);

// How many files this process may have open.
std::uint64_t open_file_limit();
// Raises that to what the system allows without privileges; returns it. Called once, at the start of main.
std::uint64_t raise_open_file_limit();
// Throws RunError where the limit, raised, stays below `needed`; `who` ("server 0") needs them.
void require_open_files(std::uint64_t needed, std::string_view who);

// Lets the allocator keep what was freed, up to some hundred MiB: pages that the kernel hands out afresh for each
// received slice cost several times what copying it costs. Called once, at the start of main.
void keep_freed_memory();

}  // namespace parley

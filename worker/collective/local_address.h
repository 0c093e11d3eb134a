// Turns the host part of cluster.bind or cluster.advertise into what Gloo (an address) and NCCL (an interface) want.
// Both would take a host's name themselves, but Gloo reads uninitialised memory where a name does not resolve.
//
// Thread rule: any thread; asks the resolver, so it may block.
#pragma once

#include <string>

namespace parley {

struct LocalAddress {
  std::string address;    // numeric: "127.0.0.1", "fd00::7"
  std::string interface;  // that has it: "lo", "eth0"
};

// The first address of `host` that an interface of this machine has. Throws UsageError naming the host where it does
// not resolve, or where no address of it is this machine's (a wildcard such as 0.0.0.0 is nobody's address).
LocalAddress local_address(const std::string& host);

}  // namespace parley

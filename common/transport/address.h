// Where a process listens and how others reach it: "host:port" texts, what their names resolve to, and what is safe to
// bind. Names are resolved here and never by ZeroMQ, which would try one address of a name and no other.
//
// Pure functions but for the system's resolver and its list of interfaces; any thread.
#pragma once

#include "common/base/error.h"
#include "common/base/instant.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parley {

struct Address {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  // "host:port", with brackets round an IPv6 address.
  std::string text() const;
  // "tcp://host:port", as it stands in messages.
  std::string endpoint() const { return "tcp://" + text(); }

  bool operator==(const Address&) const = default;
};

// "host:port" or "[v6]:port", with or without "tcp://" in front; the error says what was found and expected. For what a
// peer sent.
Result<Address> read_address(std::string_view text);
// The same for what the operator wrote: throws UsageError that begins with `where` ("cluster.coordinator").
Address parse_address(std::string_view text, std::string_view where);

// One numeric address.
class NumericAddress {
 public:
  enum class Family { v4, v6 };

  NumericAddress(Family family, std::string host, std::uint16_t port, bool loopback, bool wildcard)
      : address_{std::move(host), port}, family_(family), loopback_(loopback), wildcard_(wildcard) {}

  const Address& address() const { return address_; }
  Family family() const { return family_; }
  // 127.0.0.0/8, ::1: reachable from this host only.
  bool is_loopback() const { return loopback_; }
  // 0.0.0.0, ::: every interface; good for binding only.
  bool is_wildcard() const { return wildcard_; }

 private:
  Address address_;
  Family family_;
  bool loopback_;
  bool wildcard_;
};

// All that the name stands for, IPv4 first, each once, at least one. Throws RunError that names what does not resolve.
std::vector<NumericAddress> resolve(const Address& address);

// What others connect to, given what was bound (numeric, with its port) and the operator's cluster.advertise (a host,
// or empty): that host, or the bound one, or where that is a wildcard this host's first address that is not loopback.
// Never a wildcard. Throws UsageError where `advertise` is one.
Address advertised(const Address& bound, std::string_view advertise);

// Throws UsageError where binding `address` would let other hosts in and the operator did not say --insecure.
void require_safe_bind(const Address& address, bool insecure);

// Why nothing answers at `address`, for people: tries to connect, for at most `patience`.
std::string why_unreachable(const Address& address, Duration patience);

}  // namespace parley

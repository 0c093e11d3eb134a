// Values that a config writes as text and that have a syntax of their own: a host, host:port, a device. Pure functions;
// a fault comes back as a Result whose message says what was expected.
#pragma once

#include "common/base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace parley {

struct HostPort {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
  std::uint16_t port = 0;
};

// "name:7070", "10.0.0.1:7070", "[fe80::1]:7070".
Result<HostPort> parse_host_port(std::string_view text);
// The reverse: brackets go round an IPv6 address.
std::string to_text(const HostPort& address);

// A name, an IPv4 address or an IPv6 address (brackets allowed, and taken off).
Result<std::string> parse_host(std::string_view text);

// 127.0.0.0/8, ::1 and localhost. Other names count as reachable from elsewhere: what they resolve to may change.
bool is_loopback(std::string_view host);
// 0.0.0.0 and ::, good for binding only.
bool is_wildcard(std::string_view host);

struct Device {
  enum class Kind { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  int index = 0;  // of the GPU; 0 unless cuda
};

// "auto" (the first GPU where one is usable, else the CPU), "cpu", "cuda:N".
Result<Device> parse_device(std::string_view text);

}  // namespace parley

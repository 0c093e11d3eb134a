#include "worker/collective/local_address.h"

#include "common/base/error.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>

namespace parley {
namespace {

bool is_loopback(const in_addr& address) { return (ntohl(address.s_addr) >> 24) == 127; }

// Whether an interface with address `have` serves `want`; all of 127.0.0.0/8 belongs to the loopback interface.
bool serves(const sockaddr& have, const sockaddr& want) {
  if (have.sa_family != want.sa_family) return false;
  if (have.sa_family == AF_INET) {
    const in_addr& a = reinterpret_cast<const sockaddr_in&>(have).sin_addr;
    const in_addr& b = reinterpret_cast<const sockaddr_in&>(want).sin_addr;
    return a.s_addr == b.s_addr || (is_loopback(a) && is_loopback(b));
  }
  if (have.sa_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(have).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(want).sin6_addr, sizeof(in6_addr)) == 0;
  }
  return false;
}

std::optional<std::string> interface_of(const ifaddrs* interfaces, const sockaddr& want) {
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr != nullptr && serves(*i->ifa_addr, want)) return i->ifa_name;
  }
  return std::nullopt;
}

std::string numeric(const addrinfo& info) {
  char text[NI_MAXHOST];
  const int status = getnameinfo(info.ai_addr, info.ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? text : "";
}

}  // namespace

LocalAddress local_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found); status != 0) {
    throw UsageError(
        fmt::format("all-reduce: the host '{}' (cluster.advertise, or else "
                    "cluster.bind) does not resolve: {}",
                    host, gai_strerror(status)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &freeaddrinfo);
  ifaddrs* listed = nullptr;
  if (getifaddrs(&listed) != 0) {
    throw RunError(
        fmt::format("all-reduce: this machine's network interfaces cannot be listed: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> interfaces(listed, &freeifaddrs);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (auto name = interface_of(interfaces.get(), *a->ai_addr)) return {numeric(*a), *name};
  }
  throw UsageError(
      fmt::format("all-reduce: '{}' (cluster.advertise, or else cluster.bind) is no address of this machine; "
                  "the other workers need one that they can reach this worker at",
                  host));
}

}  // namespace parley

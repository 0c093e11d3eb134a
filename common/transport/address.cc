#include "common/transport/address.h"

#include "common/base/log.h"
#include "common/transport/monotonic_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parley {
namespace {

constexpr std::string_view kScheme = "tcp://";
constexpr std::size_t kHostBytesMax = 255;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<NumericAddress> numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    const std::uint32_t ip = ntohl(v4.sin_addr.s_addr);
    return NumericAddress(NumericAddress::Family::v4, host.data(), ntohs(v4.sin_port), ip >> 24 == 127,
                          ip == INADDR_ANY);
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    const bool mapped_loopback = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127;
    return NumericAddress(NumericAddress::Family::v6, host.data(), ntohs(v6.sin6_port),
                          IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || mapped_loopback,
                          IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr));
  }
  return std::nullopt;
}

struct FreeAddressInfo {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::vector<SocketAddress> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  const std::string port = fmt::format("{}", address.port);
  addrinfo* found = nullptr;
  int status = 0;
  do {
    status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  } while (status == EAI_SYSTEM && errno == EINTR);
  if (status != 0)
    throw RunError(fmt::format("cannot resolve '{}': {}", address.host,
                               status == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(status)));
  const std::unique_ptr<addrinfo, FreeAddressInfo> owner(found);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    SocketAddress copy;
    std::memcpy(&copy.storage, one->ai_addr, one->ai_addrlen);
    copy.length = one->ai_addrlen;
    addresses.push_back(copy);
  }
  // Names with both kinds of address are served on IPv4 by most that know only one; who connects tries the others too.
  std::ranges::stable_partition(addresses, [](const SocketAddress& a) { return a.storage.ss_family == AF_INET; });
  return addresses;
}

// First address of an interface that other hosts can reach, of `family` or (none) of either, IPv4 first.
std::optional<std::string> primary_host(std::optional<NumericAddress::Family> family) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::optional<std::string> best_v6;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const bool v6 = one->ifa_addr->sa_family == AF_INET6;
    const auto found = numeric(one->ifa_addr, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (!found || found->is_loopback()) continue;
    if (family && found->family() != *family) continue;
    if (!v6) return found->address().host;
    // A link-local address means nothing without the interface, which differs from host to host.
    if (!found->address().host.starts_with("fe80:") && !best_v6) best_v6 = found->address().host;
  }
  return best_v6;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Zero where `address` takes a connection before `deadline`, else the error number.
int try_connect(const SocketAddress& address, Instant deadline) {
  const FileDescriptor fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return errno;
  if (connect(fd.get(), address.get(), address.length) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  while (true) {
    const Duration left = deadline - monotonic_now();
    if (left <= Duration::zero()) return ETIMEDOUT;
    pollfd wait{fd.get(), POLLOUT, 0};
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready = poll(&wait, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    return error;
  }
}

}  // namespace

std::string Address::text() const {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

Result<Address> read_address(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    // A peer may have sent it: nothing of it may break a log line.
    std::string shown(text.substr(0, kHostBytesMax));
    std::ranges::replace_if(
        shown, [](unsigned char c) { return c < ' ' || c >= 0x7f; }, '?');
    return failure(fmt::format("found '{}' ({}), expected HOST:PORT or [IPV6]:PORT", shown, why));
  };
  std::string_view rest = text;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return wrong("no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view port_text = rest.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) return wrong("no host");
  if (host.size() > kHostBytesMax) return wrong("host too long");
  if (!bracketed && host.find(':') != std::string_view::npos) return wrong("an IPv6 address needs brackets");
  if (bracketed && host.find(':') == std::string_view::npos) return wrong("brackets are for IPv6 addresses");
  const bool plain = std::ranges::all_of(
      host, [](unsigned char c) { return c > ' ' && c < 0x7f && std::strchr("/[]'\"", c) == nullptr; });
  if (!plain) return wrong("not a host name");
  std::uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  const auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (error != std::errc() || stop != end) return wrong("the port is not a number below 65536");
  return Address{std::string(host), port};
}

Address parse_address(std::string_view text, std::string_view where) {
  auto address = read_address(text);
  if (!address) throw UsageError(fmt::format("{}: {}", where, address.error().message));
  return *std::move(address);
}

std::vector<NumericAddress> resolve(const Address& address) {
  std::vector<NumericAddress> all;
  for (const SocketAddress& one : look_up(address)) {
    auto found = numeric(one.get(), one.length);
    if (!found) continue;
    const bool known =
        std::ranges::any_of(all, [&](const NumericAddress& other) { return other.address() == found->address(); });
    if (!known) all.push_back(*std::move(found));
  }
  if (all.empty()) throw RunError(fmt::format("cannot resolve '{}': it has no IP address", address.host));
  return all;
}

Address advertised(const Address& bound, std::string_view advertise) {
  if (!advertise.empty()) {
    Address address{std::string(advertise), bound.port};
    if (address.host.front() == '[' && address.host.back() == ']')
      address.host = address.host.substr(1, address.host.size() - 2);
    if (resolve(address).front().is_wildcard())
      throw UsageError(
          fmt::format("cluster.advertise: found '{}', expected an address that peers can connect to", advertise));
    return address;
  }
  const NumericAddress own = resolve(bound).front();
  if (!own.is_wildcard()) return bound;
  // An IPv6 wildcard listens on IPv4 as well. The host's own name is not asked: on Debian it stands for 127.0.1.1.
  const bool v4_only = own.family() == NumericAddress::Family::v4;
  const auto host = primary_host(v4_only ? std::optional(NumericAddress::Family::v4) : std::nullopt);
  return {host.value_or("127.0.0.1"), bound.port};
}

void require_safe_bind(const Address& address, bool insecure) {
  if (insecure) return;
  for (const NumericAddress& one : resolve(address)) {
    if (one.is_loopback()) continue;
    throw UsageError(fmt::format(
        "cluster.bind: found '{}', which other hosts can reach{}: nothing would keep strangers "
        "out; expected a loopback address, or the flag --insecure on a network that you trust",
        address.host, one.address().host == address.host ? "" : fmt::format(" (as {})", one.address().host)));
  }
}

std::string why_unreachable(const Address& address, Duration patience) {
  std::vector<SocketAddress> candidates;
  try {
    candidates = look_up(address);
  } catch (const RunError& error) {
    return error.what();
  }
  const Instant deadline = monotonic_now() + patience;
  std::optional<int> first_error;
  for (const SocketAddress& one : candidates) {
    const int error = try_connect(one, deadline);
    if (error == 0) return "the port is open, but no Parley process answers there";
    if (!first_error) first_error = error;
  }
  return std::strerror(first_error.value_or(EADDRNOTAVAIL));
}

}  // namespace parley

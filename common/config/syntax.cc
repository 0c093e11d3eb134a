#include "common/config/syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <optional>

namespace parley {
namespace {

constexpr std::size_t kMaxHostLength = 253;  // of a DNS name
constexpr int kMaxCudaIndex = 127;

template <class Integer>
std::optional<Integer> whole_number(std::string_view text) {
  Integer number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  const std::string without_zone = text.substr(0, text.find('%'));
  return inet_pton(AF_INET6, without_zone.c_str(), &address) == 1;
}

bool is_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  // Digits and dots alone are an IPv4 address that went wrong, never a name.
  const bool numeric = text.find_first_not_of("0123456789.") == std::string_view::npos;
  return !text.empty() && text.size() <= kMaxHostLength && !numeric && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), good);
}

}  // namespace

Result<std::string> parse_host(std::string_view text) {
  std::string host(text);
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (is_ipv6(host) || (!brackets && (is_ipv4(host) || is_name(host)))) return host;
  return failure("a host name, an IPv4 address or an IPv6 address");
}

Result<HostPort> parse_host_port(std::string_view text) {
  constexpr const char* kExpected = "HOST:PORT with a port from 0 to 65535 (IPv6 as [ADDRESS]:PORT)";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return failure(kExpected);
  const auto port = whole_number<std::uint16_t>(text.substr(colon + 1));
  const std::string_view written = text.substr(0, colon);
  auto host = parse_host(written);
  // Without brackets it is not clear where an IPv6 address ends and the port begins.
  const bool bare_ipv6 = written.find(':') != std::string_view::npos && written.front() != '[';
  if (!port || !host || bare_ipv6) return failure(kExpected);
  return HostPort{std::move(*host), *port};
}

std::string to_text(const HostPort& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", ipv6 ? "[" : "", address.host, ipv6 ? "]" : "", address.port);
}

bool is_loopback(std::string_view host) {
  if (host == "localhost") return true;
  const std::string text(host);
  if (is_ipv4(text)) return host.starts_with("127.");
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

bool is_wildcard(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

Result<Device> parse_device(std::string_view text) {
  if (text == "auto") return Device{Device::Kind::automatic, 0};
  if (text == "cpu") return Device{Device::Kind::cpu, 0};
  if (text.starts_with("cuda:")) {
    const auto index = whole_number<int>(text.substr(5));
    if (index && *index >= 0 && *index <= kMaxCudaIndex) return Device{Device::Kind::cuda, *index};
  }
  return failure(fmt::format("auto, cpu or cuda:N with N from 0 to {}", kMaxCudaIndex));
}

}  // namespace parley

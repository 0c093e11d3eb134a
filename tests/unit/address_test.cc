#include "common/transport/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace parley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Fault, class Call>
std::string fault_of(Call call) {
  try {
    call();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "nothing was thrown";
}

TEST(Address, ReadsHostAndPort) {
  EXPECT_EQ(parse_address("node7.example:7070", "x"), (Address{"node7.example", 7070}));
  EXPECT_EQ(parse_address("10.0.0.1:0", "x"), (Address{"10.0.0.1", 0}));
  EXPECT_EQ(parse_address("[fe80::1%eth0]:65535", "x"), (Address{"fe80::1%eth0", 65535}));
  EXPECT_EQ(parse_address("tcp://[::1]:80", "x"), (Address{"::1", 80}));
}

TEST(Address, WritesWhatItReads) {
  for (const char* text : {"localhost:1", "127.0.0.1:7070", "[::1]:7070"}) {
    const Address address = parse_address(text, "x");
    EXPECT_EQ(address.text(), text);
    EXPECT_EQ(parse_address(address.endpoint(), "x"), address);
  }
}

TEST(Address, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"localhost", "no port"},
      {"", "no port"},
      {":80", "no host"},
      {"[]:80", "no host"},
      {"::1:80", "an IPv6 address needs brackets"},
      {"[localhost]:80", "brackets are for IPv6 addresses"},
      {"host:", "the port is not a number below 65536"},
      {"host:65536", "the port is not a number below 65536"},
      {"host:-1", "the port is not a number below 65536"},
      {"host:80x", "the port is not a number below 65536"},
      {"a b:80", "not a host name"},
      {"http://host:80", "an IPv6 address needs brackets"},
      {std::string("a\0b:80", 6), "not a host name"},
      {std::string(300, 'a') + ":80", "host too long"},
  };
  for (const auto& [text, why] : faults)
    EXPECT_THAT(
        fault_of<UsageError>([&] { parse_address(text, "cluster.coordinator"); }),
        AllOf(HasSubstr("cluster.coordinator: found '"), HasSubstr("(" + why + ")"), HasSubstr("expected HOST:PORT")))
        << text;
}

TEST(Address, ResolvesNumbersToThemselves) {
  const std::vector<NumericAddress> v4 = resolve({"127.1.2.3", 9});
  ASSERT_EQ(v4.size(), 1u);
  EXPECT_EQ(v4[0].address(), (Address{"127.1.2.3", 9}));
  EXPECT_TRUE(v4[0].is_loopback());
  EXPECT_FALSE(v4[0].is_wildcard());
  const std::vector<NumericAddress> v6 = resolve({"::1", 9});
  ASSERT_EQ(v6.size(), 1u);
  EXPECT_EQ(v6[0].family(), NumericAddress::Family::v6);
  EXPECT_TRUE(v6[0].is_loopback());
  EXPECT_TRUE(resolve({"0.0.0.0", 1}).front().is_wildcard());
  EXPECT_TRUE(resolve({"::", 1}).front().is_wildcard());
  EXPECT_TRUE(resolve({"::ffff:127.0.0.1", 1}).front().is_loopback());
  EXPECT_FALSE(resolve({"192.0.2.1", 1}).front().is_loopback());
}

TEST(Address, ResolvesLocalhostToLoopback) {
  for (const NumericAddress& one : resolve({"localhost", 5})) EXPECT_TRUE(one.is_loopback()) << one.address().text();
}

TEST(Address, NamesWhatDoesNotResolve) {
  EXPECT_THAT(fault_of<RunError>([] {
                resolve({"no-such-host.invalid", 80});
              }),
              HasSubstr("cannot resolve 'no-such-host.invalid': "));
}

TEST(Address, AdvertisesWhatWasBound) {
  EXPECT_EQ(advertised({"127.0.0.1", 80}, ""), (Address{"127.0.0.1", 80}));
  EXPECT_EQ(advertised({"::1", 80}, ""), (Address{"::1", 80}));
}

TEST(Address, AdvertisesTheOperatorsHost) {
  EXPECT_EQ(advertised({"0.0.0.0", 80}, "192.0.2.9"), (Address{"192.0.2.9", 80}));
  EXPECT_EQ(advertised({"::", 80}, "[2001:db8::1]"), (Address{"2001:db8::1", 80}));
  EXPECT_EQ(advertised({"127.0.0.1", 80}, "localhost"), (Address{"localhost", 80}));
}

TEST(Address, NeverAdvertisesAWildcard) {
  for (const char* bound : {"0.0.0.0", "::"}) {
    const Address address = advertised({bound, 80}, "");
    EXPECT_EQ(address.port, 80);
    EXPECT_FALSE(resolve(address).front().is_wildcard()) << address.text();
  }
  EXPECT_EQ(resolve(advertised({"0.0.0.0", 80}, "")).front().family(), NumericAddress::Family::v4);
  for (const char* host : {"0.0.0.0", "::", "[::]"})
    EXPECT_THAT(fault_of<UsageError>([&] {
                  advertised({"127.0.0.1", 80}, host);
                }),
                HasSubstr("cluster.advertise: found '"));
}

TEST(Address, BindsLoopbackOnlyUnlessToldOtherwise) {
  for (const char* host : {"127.0.0.1", "127.8.8.8", "::1", "localhost"})
    EXPECT_NO_THROW(require_safe_bind({host, 0}, false)) << host;
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "2001:db8::1"}) {
    EXPECT_THAT(fault_of<UsageError>([&] {
                  require_safe_bind({host, 0}, false);
                }),
                AllOf(HasSubstr("cluster.bind"), HasSubstr(host), HasSubstr("--insecure")));
    EXPECT_NO_THROW(require_safe_bind({host, 0}, true));
  }
}

}  // namespace
}  // namespace parley

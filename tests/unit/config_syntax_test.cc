#include "common/config/syntax.h"

#include <gtest/gtest.h>

namespace parley {
namespace {

TEST(ConfigSyntax, HostAndPort) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  const Case cases[] = {
      {"127.0.0.1:0", "127.0.0.1", 0},
      {"node-a:7070", "node-a", 7070},
      {"a.b.example:65535", "a.b.example", 65535},
      {"[::1]:7070", "::1", 7070},
      {"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
  };
  for (const Case& one : cases) {
    const auto address = parse_host_port(one.text);
    ASSERT_TRUE(address) << one.text;
    EXPECT_EQ(address->host, one.host);
    EXPECT_EQ(address->port, one.port);
    EXPECT_EQ(to_text(*address), one.text);
  }
}

TEST(ConfigSyntax, BadHostAndPort) {
  for (const char* text : {"",           ":",          "host",      "host:",          ":7070",
                           "host:65536", "host:-1",    "host:7a",   "1.2.3:7070",     "300.0.0.1:7070",
                           "::1:7070",   "[::1]",      "[::1:7070", "[1.2.3.4]:7070", "tcp://host:7070",
                           "ho st:7070", "-host:7070", "[]:7070",   "host:+1",        "fe80::1"}) {
    EXPECT_FALSE(parse_host_port(text)) << text;
  }
  EXPECT_FALSE(parse_host(std::string(254, 'a')));
  EXPECT_FALSE(parse_host("*"));
}

TEST(ConfigSyntax, Loopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "node", "127.example", "", "1127.0.0.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
  EXPECT_TRUE(is_wildcard("0.0.0.0"));
  EXPECT_TRUE(is_wildcard("::"));
  EXPECT_TRUE(is_wildcard("0:0::0"));
  EXPECT_FALSE(is_wildcard("127.0.0.1"));
  EXPECT_FALSE(is_wildcard("::1"));
}

TEST(ConfigSyntax, Devices) {
  EXPECT_EQ(parse_device("auto")->kind, Device::Kind::automatic);
  EXPECT_EQ(parse_device("cpu")->kind, Device::Kind::cpu);
  EXPECT_EQ(parse_device("cuda:0")->kind, Device::Kind::cuda);
  EXPECT_EQ(parse_device("cuda:12")->index, 12);
  for (const char* text : {"", "CPU", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:128", "gpu:0"}) {
    EXPECT_FALSE(parse_device(text)) << text;
  }
}

}  // namespace
}  // namespace parley

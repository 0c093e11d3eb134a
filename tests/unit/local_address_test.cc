#include "worker/collective/local_address.h"

#include "common/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parley {
namespace {

TEST(LocalAddress, LoopbackIsKnownByNameAndByAnyOfItsAddresses) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.0.9"}) {
    EXPECT_EQ(local_address(host).interface, "lo") << host;
  }
  EXPECT_EQ(local_address("127.0.0.9").address, "127.0.0.9");
}

TEST(LocalAddress, WhatIsNotOursIsRefusedByName) {
  for (const char* host : {"no-such-host.invalid", "0.0.0.0", "192.0.2.1", ""}) {
    try {
      local_address(host);
      FAIL() << host;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(host));
    }
  }
}

}  // namespace
}  // namespace parley

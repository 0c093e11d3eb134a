#include "server/core/key_value_store.h"

#include "common/wire/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Bytes = std::vector<std::uint8_t>;
const KeyValueStore::Reader kFirst{Role::worker, Rank(0)};
const KeyValueStore::Reader kSecond{Role::worker, Rank(1)};

TEST(KeyValueStore, a_get_finds_what_was_set) {
  KeyValueStore store;
  EXPECT_THAT(store.set("key", {1, 2}).waiting, IsEmpty());
  ASSERT_NE(store.get("key", kFirst), nullptr);
  EXPECT_EQ(*store.get("key", kFirst), (Bytes{1, 2}));
  store.set("key", {3});
  EXPECT_EQ(*store.get("key", kFirst), (Bytes{3}));
}

TEST(KeyValueStore, a_get_before_the_set_waits_for_it_once) {
  KeyValueStore store;
  EXPECT_EQ(store.get("key", kSecond), nullptr);
  EXPECT_EQ(store.get("key", kFirst), nullptr);
  EXPECT_EQ(store.get("key", kFirst), nullptr);
  EXPECT_EQ(store.get("other", kFirst), nullptr);
  EXPECT_THAT(store.set("key", {1}).waiting, ElementsAre(kFirst, kSecond));
  EXPECT_THAT(store.set("key", {2}).waiting, IsEmpty());
}

TEST(KeyValueStore, has_limits) {
  KeyValueStore store;
  EXPECT_TRUE(store.set("largest", Bytes(limits::kStoreValueBytesMax)).stored);
  EXPECT_FALSE(store.set("larger", Bytes(limits::kStoreValueBytesMax + 1)).stored);
  EXPECT_EQ(store.get("larger", kFirst), nullptr);
}

}  // namespace
}  // namespace parley

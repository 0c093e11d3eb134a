// The list of keys is consistent in itself, and what is made from it is complete.
#include "common/config/keys.h"
#include "common/config/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace parley {
namespace {

TEST(ConfigKeys, AreUniqueAndStandInKnownSections) {
  std::set<std::string> names;
  for (const Key& key : keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_TRUE(std::any_of(sections().begin(), sections().end(), [&](const Section& s) {
      return s.name == key.section();
    })) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
    EXPECT_EQ(&keys()[index_of(key)], &key);
  }
  EXPECT_EQ(find_key("cluster.nothing"), nullptr);
}

TEST(ConfigKeys, EverySectionHasAKey) {
  for (const Section& section : sections()) {
    EXPECT_TRUE(std::any_of(keys().begin(), keys().end(), [&](const Key& k) { return k.section() == section.name; }))
        << section.name;
  }
}

TEST(ConfigKeys, DefaultsAreWithinTheirOwnBounds) {
  for (const Key& key : keys()) {
    EXPECT_EQ(out_of_bounds(key, key.get(Config{})), std::nullopt) << key.name;
  }
}

TEST(ConfigKeys, HaveHelpThatReadsAsSentences) {
  for (const Key& key : keys()) {
    EXPECT_GT(key.help.size(), 10u) << key.name;
    EXPECT_EQ(key.help.back(), '.') << key.name;
  }
}

TEST(ConfigKeys, ConditionsNameTheKeysThatDecide) {
  for (const Key& key : keys()) {
    if (!key.condition.holds) continue;
    EXPECT_FALSE(std::string(key.condition.when).empty()) << key.name;
    EXPECT_FALSE(key.condition.decided_by.empty()) << key.name;
    for (const std::string& name : key.condition.decided_by) {
      EXPECT_NE(find_key(name), nullptr) << key.name << " is decided by " << name;
    }
  }
}

// A value other than the default, within bounds.
Value other_value(const Key& key) {
  switch (key.type) {
    case KeyType::integer: {
      const auto held = std::get<std::int64_t>(key.get(Config{}));
      const auto step = key.integers.multiple_of;
      return held + step <= key.integers.high ? held + step : held - step;
    }
    case KeyType::number:
      return (key.numbers.low + key.numbers.high) / 2;
    case KeyType::boolean:
      return !std::get<bool>(key.get(Config{}));
    case KeyType::string:
      if (key.name == "cluster.coordinator") return std::string("node-a:7070");
      if (key.name == "worker.device") return std::string("cuda:1");
      return std::string("elsewhere");
    case KeyType::choice:
      return key.choices.back();
    case KeyType::integer_list:
      return std::vector<std::int64_t>{3, 2, 1};
    case KeyType::string_list:
      return std::vector<std::string>{"*.bias", "norm?"};
  }
  return false;
}

TEST(ConfigKeys, EachIsBoundToAMemberOfItsOwn) {
  for (const Key& key : keys()) {
    const Value value = other_value(key);
    ASSERT_EQ(out_of_bounds(key, value), std::nullopt) << key.name;
    Config config;
    key.set(config, value);
    EXPECT_EQ(key.get(config), value) << key.name;
    for (const Key& other : keys()) {
      if (&other != &key) {
        EXPECT_EQ(other.get(config), other.get(Config{})) << key.name << " changes " << other.name;
      }
    }
  }
}

TEST(ConfigKeys, ChoicesAreBoundInTheOrderOfTheirWords) {
  for (const Key& key : keys()) {
    for (const std::string& choice : key.choices) {
      Config config;
      key.set(config, choice);
      EXPECT_EQ(key.get(config), Value(choice)) << key.name;
    }
  }
  EXPECT_EQ(word(SyncMode::bsp), "bsp");
  EXPECT_EQ(word(SyncMode::none), "none");
  EXPECT_EQ(word(DataSplit::dynamic_split), "dynamic");
  EXPECT_EQ(word(OptimizerName::rmsprop), "rmsprop");
  EXPECT_EQ(word(Schedule::cosine), "cosine");
  EXPECT_EQ(word(ModelType::lenet5), "lenet5");
  EXPECT_EQ(word(DataKind::mnist), "mnist");
}

TEST(ConfigKeys, NumbersPrintShortAndReadBackTheSame) {
  EXPECT_EQ(to_toml(0.05), "0.05");
  EXPECT_EQ(to_toml(1.0), "1.0");
  EXPECT_EQ(to_toml(1e-8), "1e-08");
  EXPECT_EQ(to_toml(1e22), "1e+22");
  EXPECT_EQ(to_toml(std::string("a\"b\\c\n")), "\"a\\\"b\\\\c\\u000a\"");
  EXPECT_EQ(to_toml(std::vector<std::int64_t>{}), "[]");
  EXPECT_EQ(to_toml(std::vector<std::string>{"a", "b"}), "[\"a\", \"b\"]");
}

TEST(ConfigKeys, AdviceFindsWhatWasMeant) {
  EXPECT_EQ(advice_for_key("cluster.wrokers"), "did you mean cluster.workers?");
  EXPECT_EQ(advice_for_key("train.learning_rate"), "did you mean optimizer.learning_rate?");
  EXPECT_EQ(advice_for_key("staleness"), "did you mean sync.staleness?");
  EXPECT_EQ(advice_for_key("sync.colour"), "the keys of [sync] are mode, staleness");
  EXPECT_EQ(advice_for_section("optimiser"), "did you mean [optimizer]?");
  EXPECT_NE(advice_for_section("x").find("the sections are cluster, server"), std::string::npos);
  EXPECT_NE(advice_for_key(std::string(100000, 'a')).find("the sections are"), std::string::npos);
}

TEST(ConfigPages, HelpDocumentsEveryKey) {
  const std::string page = help_page();
  for (const Key& key : keys()) {
    EXPECT_NE(page.find("--" + key.name + " "), std::string::npos) << key.name;
  }
  EXPECT_NE(page.find("Default: 0.5. Takes a number from 0.01 to 60 (s)."), std::string::npos);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ConfigPages, TheCommittedReferenceIsTheGeneratedOne) {
  std::ifstream file("docs/configuration.md");
  ASSERT_TRUE(file) << "run from the root of the source tree";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), markdown_page())
      << "write it anew: parley-server --print-config-markdown > docs/configuration.md";
}

}  // namespace
}  // namespace parley

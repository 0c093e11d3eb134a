// The single definition of every config key. The TOML reader, the flags, --help, --print-config, docs/configuration.md,
// the error messages, the job's fingerprint and the launcher all come from this list; nothing else names a key.
//
// The list is built once and never changes, so any thread may read it.
#pragma once

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/config/value.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley {

enum class KeyType { integer, number, boolean, string, choice, integer_list, string_list };

// job: all processes must agree; part of the fingerprint that registration compares. process: each may differ.
enum class Scope { job, process };

// Both ends count, except where `open`.
struct IntegerBounds {
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;
  std::int64_t multiple_of = 1;
};
struct NumberBounds {
  double low = 0;
  double high = 0;
  bool low_open = false;
  bool high_open = false;
};

// When a key has an effect. Without `holds`: always.
struct Condition {
  bool (*holds)(const Config&) = nullptr;
  const char* when = "";                // completes "counts only ...": "with sync.mode = ssp"
  std::vector<std::string> decided_by;  // the keys that `holds` reads, for the message
};

struct Key {
  std::string name;  // "section.key"
  KeyType type = KeyType::integer;
  Scope scope = Scope::job;
  std::string unit;  // "s", "bytes", ...; may be empty
  std::string help;  // one or two sentences
  IntegerBounds integers;
  NumberBounds numbers;
  std::size_t max_items = 0;         // of a list
  std::vector<std::string> choices;  // of a choice
  // The syntax of a string or of a string list's items: returns what was expected where the text is not good.
  std::optional<std::string> (*syntax)(const std::string&) = nullptr;
  std::string form;  // what the syntax is, in words; may be empty
  Condition condition;
  std::string default_note;  // for the reader, where the default depends on another key
  // For such a default; called once every key that was given has its value.
  void (*derive_default)(Config&) = nullptr;

  std::function<Value(const Config&)> get;
  std::function<void(Config&, const Value&)> set;  // the value is of the key's type and within its bounds

  std::string_view section() const { return std::string_view(name).substr(0, name.find('.')); }
  std::string_view leaf() const { return std::string_view(name).substr(name.find('.') + 1); }
  bool active(const Config& config) const { return !condition.holds || condition.holds(config); }
};

// All keys, section by section, in the order in which a person reads about them.
const std::vector<Key>& keys();
// The section names in that order, and what each is about.
struct Section {
  std::string name;
  std::string about;
};
const std::vector<Section>& sections();

// Nothing where there is no key of that name.
const Key* find_key(std::string_view name);
// The place of a key of keys() in it.
std::size_t index_of(const Key& key);

// What the key accepts, to follow "expected": "an integer from 1 to 1024", "one of bsp, ssp, ...".
std::string expected(const Key& key);
// Nothing where the value is within the key's bounds, else "found X, expected Y". The value is of the key's type.
std::optional<std::string> out_of_bounds(const Key& key, const Value& value);

// Advice that ends a message about an unknown name: "did you mean cluster.workers?" where a key is near, otherwise what
// there is to choose from. `name` is what was written; a section is written without a dot.
std::string advice_for_key(std::string_view name);
std::string advice_for_section(std::string_view name);
// The nearest of the words, where one is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& words);

}  // namespace parley

// What keys.h says about a key in words: what it accepts, what is wrong with a value, which name was meant.
#include "common/config/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace parley {
namespace {

std::string in_unit(const Key& key) { return key.unit.empty() ? "" : fmt::format(" ({})", key.unit); }

std::string integer_range(const IntegerBounds& bounds) {
  std::string text = bounds.high == INT64_MAX ? fmt::format("from {}", bounds.low)
                                              : fmt::format("from {} to {}", bounds.low, bounds.high);
  if (bounds.multiple_of > 1) text += fmt::format(", a multiple of {}", bounds.multiple_of);
  return text;
}

std::string number_range(const NumberBounds& bounds) {
  return fmt::format("{} {} {} {}", bounds.low_open ? "above" : "from", bounds.low,
                     bounds.high_open ? "to below" : "to", bounds.high);
}

bool within(const IntegerBounds& bounds, std::int64_t number) {
  return number >= bounds.low && number <= bounds.high && number % bounds.multiple_of == 0;
}

bool within(const NumberBounds& bounds, double number) {
  if (!std::isfinite(number)) return false;
  const bool above = bounds.low_open ? number > bounds.low : number >= bounds.low;
  const bool below = bounds.high_open ? number < bounds.high : number <= bounds.high;
  return above && below;
}

// What the syntax expects where the text does not have it. No string holds a control character: it would break lines of
// logs and reports, and a NUL would cut paths short.
std::optional<std::string> text_fault(const Key& key, const std::string& text) {
  constexpr std::size_t kMaxText = 4096;
  if (text.size() > kMaxText) return fmt::format("at most {} bytes", kMaxText);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), control)) return "a text without control characters";
  return key.syntax ? key.syntax(text) : std::nullopt;
}

std::optional<std::string> item_fault(const Key& key, std::int64_t item) {
  if (within(key.integers, item)) return std::nullopt;
  return expected(key);
}

std::optional<std::string> item_fault(const Key& key, const std::string& item) { return text_fault(key, item); }

// What was expected, for a value that the key does not take; `found` is the part of the value at fault.
struct Fault {
  std::string found;
  std::string wanted;
};

struct Checker {
  const Key& key;

  std::optional<Fault> operator()(std::int64_t number) const {
    if (within(key.integers, number)) return std::nullopt;
    return Fault{to_toml(number), expected(key)};
  }
  std::optional<Fault> operator()(double number) const {
    if (within(key.numbers, number)) return std::nullopt;
    return Fault{to_toml(number), expected(key)};
  }
  std::optional<Fault> operator()(bool) const { return std::nullopt; }
  std::optional<Fault> operator()(const std::string& text) const {
    if (key.type == KeyType::choice) {
      if (std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end()) {
        return std::nullopt;
      }
      const auto meant = nearest(text, key.choices);
      return Fault{in_quotes(printable(text)),
                   expected(key) + (meant ? fmt::format("; did you mean {}?", *meant) : "")};
    }
    if (auto wanted = text_fault(key, text)) return Fault{in_quotes(printable(text)), *wanted};
    return std::nullopt;
  }
  template <class Item>
  std::optional<Fault> operator()(const std::vector<Item>& items) const {
    if (items.size() > key.max_items) {
      return Fault{fmt::format("{} items", items.size()), fmt::format("at most {} items", key.max_items)};
    }
    for (const Item& item : items) {
      if (auto wanted = item_fault(key, item)) return Fault{printable(to_toml(item)), *wanted};
    }
    return std::nullopt;
  }
};

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

constexpr std::size_t kMaxName = 64;  // longer ones are near to nothing, and are not worth the time

bool near_enough(std::size_t edits, std::string_view name) {
  return edits <= std::max<std::size_t>(1, (name.size() + 1) / 3);
}

std::string section_list() {
  std::vector<std::string> names;
  for (const Section& section : sections()) names.push_back(section.name);
  return fmt::format("the sections are {}", fmt::join(names, ", "));
}

}  // namespace

std::string expected(const Key& key) {
  switch (key.type) {
    case KeyType::integer:
      return fmt::format("an integer {}{}", integer_range(key.integers), in_unit(key));
    case KeyType::number:
      return fmt::format("a number {}{}", number_range(key.numbers), in_unit(key));
    case KeyType::boolean:
      return "true or false";
    case KeyType::string:
      return key.form.empty() ? "a string" : fmt::format("a string: {}", key.form);
    case KeyType::choice:
      return (key.choices.size() > 1 ? "one of " : "") + fmt::format("{}", fmt::join(key.choices, ", "));
    case KeyType::integer_list:
      return fmt::format("a list of integers {}{}", integer_range(key.integers), in_unit(key));
    case KeyType::string_list:
      return key.form.empty() ? "a list of strings" : fmt::format("a list of strings: {}", key.form);
  }
  return "";
}

std::optional<std::string> out_of_bounds(const Key& key, const Value& value) {
  const auto fault = std::visit(Checker{key}, value);
  if (!fault) return std::nullopt;
  return fmt::format("found {}, expected {}", fault->found, fault->wanted);
}

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& words) {
  if (name.size() > kMaxName) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : words) {
    const std::size_t edits = distance(name, candidate);
    if (!best || edits < best_distance) {
      best = &candidate;
      best_distance = edits;
    }
  }
  if (!best || !near_enough(best_distance, name)) return std::nullopt;
  return *best;
}

std::string advice_for_key(std::string_view name) {
  // Either the whole name is near, or it is the right key in a wrong section (or in none).
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  const Key* best = nullptr;
  std::size_t best_distance = 0;
  for (const Key& key : keys()) {
    if (name.size() > kMaxName) break;
    const std::size_t edits = std::min(distance(name, key.name), distance(leaf, key.leaf()) + 1);
    const bool good = near_enough(edits, leaf);
    if (good && (!best || edits < best_distance)) {
      best = &key;
      best_distance = edits;
    }
  }
  if (best) return fmt::format("did you mean {}?", best->name);

  const std::string_view section = name.substr(0, name.find('.'));
  std::vector<std::string> leaves;
  for (const Key& key : keys()) {
    if (key.section() == section) leaves.emplace_back(key.leaf());
  }
  if (leaves.empty()) return section_list();
  return fmt::format("the keys of [{}] are {}", section, fmt::join(leaves, ", "));
}

std::string advice_for_section(std::string_view name) {
  std::vector<std::string> names;
  for (const Section& section : sections()) names.push_back(section.name);
  const auto meant = nearest(name, names);
  return meant ? fmt::format("did you mean [{}]?", *meant) : section_list();
}

}  // namespace parley

#include "common/config/toml_file.h"

#include "common/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

// toml++ 3.3 asserts on some bad files ("[[[a]]]") that its parser then reports properly: a wrong file must end in a
// message in every kind of build, so the assertions are off as they are under NDEBUG.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

namespace parley {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

// The file's text, or why there is none. Plain system calls, so that the reason is the system's own ("Is a directory").
Result<std::string> read_all(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failure(std::strerror(errno));
  std::string text;
  std::array<char, 65536> buffer{};
  ssize_t got = 0;
  do {
    got = ::read(file, buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  } while ((got > 0 && text.size() <= kMaxFileBytes) || (got < 0 && errno == EINTR));
  const int reason = errno;
  ::close(file);
  if (got < 0) return failure(std::strerror(reason));
  if (text.size() > kMaxFileBytes) {
    return failure(fmt::format("it is larger than {} bytes", kMaxFileBytes));
  }
  return text;
}

// What a node is, in words, for "found ...".
std::string found(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "the string " + in_quotes(printable(node.as_string()->get()));
    case toml::node_type::integer:
      return fmt::format("the integer {}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return "the number " + to_toml(node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    default:
      return "a date or time";
  }
}

template <class Item>
std::optional<Value> list_value(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (!array) return std::nullopt;
  std::vector<Item> items;
  for (const toml::node& element : *array) {
    const auto item = element.value_exact<Item>();
    if (!item) return std::nullopt;
    items.push_back(*item);
  }
  return items;
}

template <class Held>
std::optional<Value> scalar_value(const toml::node& node) {
  const auto held = node.value_exact<Held>();
  if (!held) return std::nullopt;
  return Value(*held);
}

// Nothing where the node is not of the key's type. An integer is fine for a number.
std::optional<Value> value_of(const toml::node& node, KeyType type) {
  switch (type) {
    case KeyType::integer:
      return scalar_value<std::int64_t>(node);
    case KeyType::number:
      if (const auto* whole = node.as_integer()) return Value(static_cast<double>(whole->get()));
      // Plus zero, so that -0.0 and 0.0 are one value.
      if (const auto* real = node.as_floating_point()) return Value(real->get() + 0.0);
      return std::nullopt;
    case KeyType::boolean:
      return scalar_value<bool>(node);
    case KeyType::string:
    case KeyType::choice:
      return scalar_value<std::string>(node);
    case KeyType::integer_list:
      return list_value<std::int64_t>(node);
    case KeyType::string_list:
      return list_value<std::string>(node);
  }
  return std::nullopt;
}

// For a list, the first element of the wrong type says more than "a list".
const toml::node& at_fault(const toml::node& node, KeyType type) {
  const toml::array* array = node.as_array();
  if (!array) return node;
  for (const toml::node& element : *array) {
    if (type == KeyType::integer_list && !element.is_integer()) return element;
    if (type == KeyType::string_list && !element.is_string()) return element;
  }
  return node;
}

class Reader {
 public:
  Reader(const std::string& path, Faults& faults) : path_(printable(path)), faults_(faults) {}

  std::vector<Given> read(const toml::table& root) {
    for (auto&& [name, node] : root) read_section(name, node);
    // toml++ keeps tables sorted by name; people read files from top to bottom.
    std::stable_sort(found_.begin(), found_.end(), [](const Fault& a, const Fault& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    for (Fault& fault : found_) faults_.add(std::move(fault.text));
    return std::move(given_);
  }

 private:
  struct Fault {
    toml::source_index line;
    toml::source_index column;
    std::string text;
  };

  void add(const toml::source_position& at, const std::string& text) {
    found_.push_back({at.line, at.column, fmt::format("{}:{}:{}: {}", path_, at.line, at.column, text)});
  }

  void read_section(const toml::key& name, const toml::node& node) {
    const std::string_view section = name.str();
    const toml::source_position at = name.source().begin;
    const bool known =
        std::any_of(sections().begin(), sections().end(), [&](const Section& s) { return s.name == section; });
    const toml::table* table = node.as_table();
    if (!known && !table && !node.is_array_of_tables()) {
      add(at, fmt::format("unknown key {} outside any section; {}", printable(section), advice_for_key(section)));
    } else if (!known) {
      add(at, fmt::format("unknown section [{}]; {}", printable(section), advice_for_section(section)));
    } else if (!table) {
      add(at, fmt::format("{}: found {}, expected a section: [{}]", section, found(node), section));
    } else {
      for (auto&& [key, value] : *table) read_key(std::string(section), key, value);
    }
  }

  void read_key(const std::string& section, const toml::key& name, const toml::node& node) {
    const std::string full = section + "." + std::string(name.str());
    const Key* key = find_key(full);
    if (!key) {
      add(name.source().begin, fmt::format("unknown key {}; {}", printable(full), advice_for_key(full)));
      return;
    }
    std::optional<Value> value = value_of(node, key->type);
    if (!value) {
      const toml::node& culprit = at_fault(node, key->type);
      add(culprit.source().begin, fmt::format("{}: found {}, expected {}", full, found(culprit), expected(*key)));
      return;
    }
    if (const auto fault = out_of_bounds(*key, *value)) {
      add(node.source().begin, fmt::format("{}: {}", full, *fault));
      return;
    }
    given_.push_back({key, std::move(*value), Source::file, fmt::format("{}:{}", path_, name.source().begin.line)});
  }

  std::string path_;
  Faults& faults_;
  std::vector<Given> given_;
  std::vector<Fault> found_;
};

}  // namespace

std::vector<Given> read_config_text(std::string_view text, const std::string& path, Faults& faults) {
  try {
    const toml::table root = toml::parse(text, path);
    if (root.empty()) {
      faults.add(fmt::format("{}: the config file holds no key", printable(path)));
    }
    return Reader(path, faults).read(root);
  } catch (const toml::parse_error& fault) {
    const toml::source_position at = fault.source().begin;
    // toml++ opens with what it was about to read ("Error while parsing key-value pair: ").
    std::string_view reason = fault.description();
    if (const std::size_t colon = reason.find(": ");
        reason.starts_with("Error while parsing") && colon != std::string_view::npos) {
      reason.remove_prefix(colon + 2);
    }
    const bool twice = reason.find("cannot redefine") != std::string_view::npos;
    faults.add(fmt::format("{}:{}:{}: {}{}", printable(path), at.line, at.column,
                           twice ? "given twice: " : "not valid TOML: ", reason));
    return {};
  }
}

std::vector<Given> read_config_file(const std::string& path, Faults& faults) {
  const Result<std::string> text = read_all(path);
  if (text) return read_config_text(*text, path, faults);
  faults.add(fmt::format("{}: cannot read the config file: {}", printable(path), text.error().message));
  return {};
}

}  // namespace parley

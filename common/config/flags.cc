#include "common/config/flags.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace parley {
namespace {

template <class Number>
std::optional<Value> number_from(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_same_v<Number, double>) number += 0.0;  // -0.0 and 0.0 are one value
  return Value(number);
}

// The items between commas; brackets round them and blanks beside the commas are allowed.
std::vector<std::string> split_list(std::string_view text) {
  const auto trim = [](std::string_view item) {
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    return item;
  };
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = trim(text.substr(1, text.size() - 2));
  }
  std::vector<std::string> items;
  if (text.empty()) return items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.emplace_back(trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return items;
}

std::optional<Value> integers_from(std::string_view text) {
  std::vector<std::int64_t> integers;
  for (const std::string& item : split_list(text)) {
    const auto value = number_from<std::int64_t>(item);
    if (!value) return std::nullopt;
    integers.push_back(std::get<std::int64_t>(*value));
  }
  return Value(std::move(integers));
}

std::optional<Value> parse(KeyType type, std::string_view text) {
  switch (type) {
    case KeyType::integer:
      return number_from<std::int64_t>(text);
    case KeyType::number:
      return number_from<double>(text);
    case KeyType::boolean:
      if (text != "true" && text != "false") return std::nullopt;
      return Value(text == "true");
    case KeyType::string:
    case KeyType::choice:
      return Value(std::string(text));
    case KeyType::integer_list:
      return integers_from(text);
    case KeyType::string_list:
      return Value(split_list(text));
  }
  return std::nullopt;
}

// CLI11 takes the next argument for the value of `--name=`; two arguments say what is meant.
std::vector<std::string> with_empty_values_apart(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) {
    const bool empty_value =
        argument.starts_with("--") && argument.size() > 3 && argument.find('=') == argument.size() - 1;
    out.push_back(empty_value ? argument.substr(0, argument.size() - 1) : argument);
    if (empty_value) out.emplace_back();
  }
  return out;
}

std::string advice_for_flag(const std::string& flag, const std::vector<PlainFlag>& plain) {
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::vector<std::string> names;
  for (const PlainFlag& one : plain) names.push_back(one.name.substr(2));
  if (const auto meant = nearest(name, names)) return fmt::format("did you mean --{}?", *meant);
  const std::string advice = advice_for_key(name);
  constexpr std::string_view kMeant = "did you mean ";
  if (!advice.starts_with(kMeant)) return advice + "; --help lists every flag";
  return fmt::format("{}--{}", kMeant, advice.substr(kMeant.size()));
}

// What CLI11 could not place: an unknown flag takes the argument behind it along. After another fault a lone argument
// says nothing new: it was the value of a flag whose place another one took.
void report_rest(const std::vector<std::string>& rest, const std::vector<PlainFlag>& plain, Faults& faults) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const std::string name = rest[i].substr(0, rest[i].find('='));
    if (name.starts_with("-") && name.size() > 1) {
      faults.add(fmt::format("unknown flag {}; {}", printable(name), advice_for_flag(name, plain)));
      if (i + 1 < rest.size() && !rest[i + 1].starts_with("-")) ++i;
    } else if (faults.empty()) {
      faults.add(fmt::format("unexpected argument {}; flags are written --name VALUE", in_quotes(printable(rest[i]))));
    }
  }
}

// The one value of a flag, or a fault: a flag given twice hides one of its values, and a value that looks like a flag
// is one whose own value was forgotten.
std::optional<std::string> single_value(const CLI::Option& option, const std::string& name, Faults& faults) {
  const std::vector<std::string>& values = option.results();
  if (values.size() > 1) {
    faults.add(fmt::format("{}: given twice ({}, then {})", name, in_quotes(printable(values[0])),
                           in_quotes(printable(values[1]))));
    return std::nullopt;
  }
  if (values.front().starts_with("--")) {
    faults.add(fmt::format("{}: needs a value, found the flag {}", name, printable(values.front())));
    return std::nullopt;
  }
  return values.front();
}

}  // namespace

std::optional<std::string> RawFlags::value(std::string_view name) const {
  const auto at = std::find_if(plain.begin(), plain.end(), [&](const auto& one) { return one.first == name; });
  if (at == plain.end()) return std::nullopt;
  return at->second;
}

RawFlags read_flags(const std::vector<std::string>& arguments, const std::vector<PlainFlag>& plain, bool device_alias,
                    Faults& faults) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<const CLI::Option*> of_keys;
  for (const Key& key : keys()) {
    const bool alias = device_alias && key.name == "worker.device";
    CLI::Option* option = app.add_option("--" + key.name + (alias ? ",--device" : ""));
    of_keys.push_back(option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  }
  std::vector<const CLI::Option*> of_plain;
  for (const PlainFlag& one : plain) {
    CLI::Option* option = one.is_switch ? app.add_flag(one.name) : app.add_option(one.name)->expected(1);
    of_plain.push_back(option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  }

  std::vector<std::string> reversed = with_empty_values_apart(arguments);
  std::reverse(reversed.begin(), reversed.end());  // the order that CLI11 takes a vector in
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch&) {
    faults.add(fmt::format("{}: needs a value", printable(arguments.back())));
    return {};
  } catch (const CLI::ParseError& fault) {
    faults.add(fmt::format("{}; --help lists every flag", fault.what()));
    return {};
  }

  RawFlags flags;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (of_plain[i]->empty()) continue;
    if (plain[i].is_switch) {
      if (of_plain[i]->results().front() != "true") {
        faults.add(fmt::format("{}: takes no value", plain[i].name));
      }
      flags.plain.emplace_back(plain[i].name, "");
    } else if (const auto text = single_value(*of_plain[i], plain[i].name, faults)) {
      flags.plain.emplace_back(plain[i].name, *text);
    }
  }
  for (std::size_t i = 0; i < keys().size(); ++i) {
    if (of_keys[i]->empty()) continue;
    const std::string name = "--" + keys()[i].name;
    const auto text = single_value(*of_keys[i], name, faults);
    if (!text) continue;
    Result<Value> value = value_from_flag(keys()[i], *text);
    if (value) {
      flags.keys.push_back({&keys()[i], std::move(*value), Source::flag, name});
    } else {
      faults.add(fmt::format("{}: {}", name, value.error().message));
    }
  }
  report_rest(app.remaining(), plain, faults);
  return flags;
}

Result<Value> value_from_flag(const Key& key, std::string_view text) {
  std::optional<Value> value = parse(key.type, text);
  if (!value) {
    return failure(fmt::format("found {}, expected {}", in_quotes(printable(text)), expected(key)));
  }
  if (auto fault = out_of_bounds(key, *value)) return failure(*fault);
  return std::move(*value);
}

}  // namespace parley

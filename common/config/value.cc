#include "common/config/value.h"

#include <fmt/format.h>

#include <iterator>

namespace parley {
namespace {

constexpr std::size_t kMaxShown = 80;

std::string scalar(std::int64_t number) { return fmt::format("{}", number); }
std::string scalar(bool flag) { return flag ? "true" : "false"; }
std::string scalar(const std::string& text) { return in_quotes(text); }

// The shortest digits that read back as the same double; a point or an exponent makes it a float in TOML.
std::string scalar(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

template <class Item>
std::string scalar(const std::vector<Item>& items) {
  std::string text = "[";
  for (const Item& item : items) {
    if (text.size() > 1) text += ", ";
    text += scalar(item);
  }
  return text + "]";
}

}  // namespace

std::string to_toml(const Value& value) {
  return std::visit([](const auto& held) { return scalar(held); }, value);
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kMaxShown));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  if (text.size() > kMaxShown) out += "...";
  return out;
}

}  // namespace parley

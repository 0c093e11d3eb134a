// One config value, whatever its key: the form in which it travels between a file, a flag, a page of text and Config.
// Seconds travel as numbers and choices as their words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace parley {

using Value =
    std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<std::string>>;

// The value as TOML, canonical: equal values give equal text, and reading the text gives the same value, bit for bit.
std::string to_toml(const Value& value);

// A TOML basic string: quotes round it, backslashes before what must not stand there.
std::string in_quotes(std::string_view text);

// Text from outside that goes into a one-line message: control characters become '?', a long text is cut short.
std::string printable(std::string_view text);

}  // namespace parley

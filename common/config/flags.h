// Flags: the command line's text taken apart, and a flag's text turned into a key's value. Every key is the flag
// `--section.key VALUE` or `--section.key=VALUE`. Lists are written with commas: `--model.hidden 512,256`; an empty
// value is the empty list.
#pragma once

#include "common/base/error.h"
#include "common/config/settings.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley {

// The flags beside the keys. A switch takes no value.
struct PlainFlag {
  std::string name;  // "--config"
  bool is_switch = false;
};

struct RawFlags {
  std::vector<Given> keys;                                 // in the order of keys()
  std::vector<std::pair<std::string, std::string>> plain;  // name, value (empty for a switch)

  // The value of a plain flag; nothing where it was not given.
  std::optional<std::string> value(std::string_view name) const;
};

// `arguments` is the command line without the program's name; `plain` are the flags beside the keys and `device_alias`
// says whether --device stands for --worker.device. Faults (unknown, given twice, without a value, not of the key's
// type, out of bounds) are added, a line each.
RawFlags read_flags(const std::vector<std::string>& arguments, const std::vector<PlainFlag>& plain, bool device_alias,
                    Faults& faults);

// The value that a flag's text gives to the key. The error is "found X, expected Y".
Result<Value> value_from_flag(const Key& key, std::string_view text);

}  // namespace parley

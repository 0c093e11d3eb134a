// Reads a TOML file into the keys that it gives. Strict: every fault of the file is found and told, a line each, as
// file:line:column: what was found, what was expected. (What is not TOML at all ends the reading at its first fault.)
#pragma once

#include "common/config/settings.h"

#include <string>
#include <string_view>
#include <vector>

namespace parley {

// A file that cannot be read (the line gives the system's reason) or that holds no key is a fault too.
std::vector<Given> read_config_file(const std::string& path, Faults& faults);

// The same for text in memory; `path` is only what messages call it.
std::vector<Given> read_config_text(std::string_view text, const std::string& path, Faults& faults);

}  // namespace parley

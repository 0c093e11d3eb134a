// Pages of text made from the single definition of the keys: what --help, --print-config and the docs show.
#pragma once

#include "common/config/settings.h"

#include <string>

namespace parley {

// Every key as a flag, section by section, with type, bounds, unit, default and help: the main part of --help.
std::string help_page();

// Every key with its effective value, and behind it where that came from. Valid TOML that reads back to the same config
// without a warning: a key without effect stands in a comment.
std::string toml_page(const Settings& settings);

// The same for programs, as JSON: `config` (section -> key -> value; a key without effect holds its default),
// `provenance` (key -> "default", "FILE:LINE" or "--flag"), `inactive` (keys without effect -> the condition that
// fails), `warning` (the line about the file's keys without effect, or ""), `servers`, `workers` and `global_batch`
// (what the mode makes of the keys), `job` (the entries that all processes must agree about) and `fingerprint` (of
// those, as hex).
std::string json_page(const Settings& settings);

// docs/configuration.md.
std::string markdown_page();

}  // namespace parley

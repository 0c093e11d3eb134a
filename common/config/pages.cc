#include "common/config/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace parley {
namespace {

constexpr std::size_t kWidth = 100;

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::integer:
      return "INTEGER";
    case KeyType::number:
      return "NUMBER";
    case KeyType::boolean:
      return "true|false";
    case KeyType::string:
      return "STRING";
    case KeyType::choice:
      return "WORD";
    case KeyType::integer_list:
      return "INTEGERS";
    case KeyType::string_list:
      return "STRINGS";
  }
  return "";
}

std::string default_text(const Key& key) {
  std::string text = to_toml(key.get(Config{}));
  if (!key.default_note.empty()) text += fmt::format(" ({})", key.default_note);
  return text;
}

// Words filled into lines of kWidth, each behind `indent` blanks.
std::string filled(const std::string& text, std::size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() > indent && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
    begin = end + 1;
  }
  return out + line + "\n";
}

// "Counts only with sync.mode = ssp."
std::string condition_text(const Key& key) {
  return key.condition.holds ? fmt::format("Counts only {}.", key.condition.when) : "";
}

// For a cell of a Markdown table, where a bar would end the cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

nlohmann::ordered_json to_json(const Value& value) {
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

template <class Visit>
void for_each_in(const Section& section, Visit visit) {
  for (const Key& key : keys()) {
    if (key.section() == section.name) visit(key);
  }
}

}  // namespace

std::string help_page() {
  std::string page;
  for (const Section& section : sections()) {
    page += fmt::format("\n{}: {}\n", section.name, section.about);
    for_each_in(section, [&](const Key& key) {
      page += fmt::format("  --{} {}\n", key.name, type_name(key.type));
      page += filled(fmt::format("{}{}{}", key.help, key.condition.holds ? " " : "", condition_text(key)), 6);
      page += filled(fmt::format("Default: {}. Takes {}.", default_text(key), expected(key)), 6);
    });
  }
  return page;
}

std::string toml_page(const Settings& settings) {
  std::string page = "# The effective config: each key with its value and where that came from.\n";
  for (const Section& section : sections()) {
    page += fmt::format("\n[{}]\n", section.name);
    for_each_in(section, [&](const Key& key) {
      const Setting& setting = settings.entries[index_of(key)];
      if (setting.active) {
        page += fmt::format("{} = {}  # {}\n", key.leaf(), to_toml(key.get(settings.config)), setting.where);
      } else {
        page += fmt::format("# {} = {}  # {}; without effect: counts only {}\n", key.leaf(), to_toml(setting.value),
                            setting.where, key.condition.when);
      }
    });
  }
  return page;
}

std::string json_page(const Settings& settings) {
  nlohmann::ordered_json page;
  page["config"] = nlohmann::ordered_json::object();
  page["provenance"] = nlohmann::ordered_json::object();
  page["inactive"] = nlohmann::ordered_json::object();
  for (const Key& key : keys()) {
    const Setting& setting = settings.entries[index_of(key)];
    page["config"][std::string(key.section())][std::string(key.leaf())] = to_json(key.get(settings.config));
    page["provenance"][key.name] = setting.where;
    if (!setting.active) page["inactive"][key.name] = key.condition.when;
  }
  page["warning"] = settings.warning;
  page["servers"] = server_count(settings.config);
  page["workers"] = worker_count(settings.config);
  page["global_batch"] = global_batch(settings.config);
  page["job"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : job_entries(settings.config)) page["job"][name] = value;
  page["fingerprint"] = fmt::format("{:016x}", fingerprint(settings.config));
  // A path may hold bytes that are not UTF-8; they must not stop the page.
  return page.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string markdown_page() {
  std::string page =
      "# Configuration\n\n"
      "<!-- Generated from common/config/keys.cc by `parley-server --print-config-markdown`; a "
      "test "
      "compares. -->\n\n"
      "A config is a TOML file with the sections below; `configs/` has an example for each use. "
      "Every "
      "key is also a flag of\n`scripts/run`, `parley-server` and `parley-worker`: `--section.key "
      "VALUE` or `--section.key=VALUE`, lists with commas. A flag\nwins over the file, the file "
      "over "
      "the default.\n\n"
      "Everything is checked: an unknown key, a value of the wrong type or out of bounds, or a key "
      "given twice ends the program\nwith exit status 2 and a line that names file, line and "
      "column. "
      "A key that has no effect in the chosen mode is an error as a\nflag; in the file it is named "
      "in one warning, so that one file serves several modes. Such a key is left out of\nthe "
      "comparison below.\n\n"
      "`--print-config` shows the effective value of every key and where it came from, as a file "
      "that can be used again;\n`--check-config` only checks. Keys of scope *job* must agree "
      "between "
      "all processes, which is checked when they register; keys\nof scope *process* may differ.\n";
  for (const Section& section : sections()) {
    page += fmt::format("\n## {}\n\n{}.\n\n", section.name, section.about);
    page += "| key | default | takes | scope | meaning |\n| --- | --- | --- | --- | --- |\n";
    for_each_in(section, [&](const Key& key) {
      page += fmt::format("| `{}` | `{}`{} | {} | {} | {}{}{} |\n", key.name, to_toml(key.get(Config{})),
                          key.default_note.empty() ? "" : fmt::format(" ({})", key.default_note), cell(expected(key)),
                          key.scope == Scope::job ? "job" : "process", cell(key.help), key.condition.holds ? " " : "",
                          cell(condition_text(key)));
    });
  }
  return page;
}

}  // namespace parley

// The small language in which keys.cc writes the list: a section binds members of one struct of Config, a key is given
// its properties one by one. Only keys.cc includes this.
#pragma once

#include "common/config/keys.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace parley {

template <class Member>
constexpr KeyType key_type() {
  if constexpr (std::is_enum_v<Member>) return KeyType::choice;
  if constexpr (std::is_same_v<Member, std::int64_t>) return KeyType::integer;
  if constexpr (std::is_same_v<Member, double>) return KeyType::number;
  if constexpr (std::is_same_v<Member, Duration>) return KeyType::number;
  if constexpr (std::is_same_v<Member, bool>) return KeyType::boolean;
  if constexpr (std::is_same_v<Member, std::string>) return KeyType::string;
  if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>) return KeyType::integer_list;
  if constexpr (std::is_same_v<Member, std::vector<std::string>>) return KeyType::string_list;
}

template <class Member>
Value to_value(const Member& member) {
  if constexpr (std::is_enum_v<Member>) {
    return std::string(word(member));
  } else if constexpr (std::is_same_v<Member, Duration>) {
    return to_seconds(member);
  } else {
    return member;
  }
}

template <class Member>
Member from_value(const Value& value) {
  if constexpr (std::is_enum_v<Member>) {
    const auto& list = Words<Member>::kList;
    std::size_t i = 0;
    while (i + 1 < list.size() && list[i] != std::get<std::string>(value)) ++i;
    return static_cast<Member>(i);
  } else if constexpr (std::is_same_v<Member, Duration>) {
    // Rounded to the nanosecond, so that the seconds that were written come back exactly.
    return Duration(std::llround(std::get<double>(value) * 1e9));
  } else {
    return std::get<Member>(value);
  }
}

class KeyBuilder {
 public:
  explicit KeyBuilder(Key& key) : key_(key) {}

  KeyBuilder& help(std::string text) { return put(key_.help, std::move(text)); }
  KeyBuilder& unit(std::string text) { return put(key_.unit, std::move(text)); }
  KeyBuilder& process() { return put(key_.scope, Scope::process); }
  KeyBuilder& only(const Condition& condition) { return put(key_.condition, condition); }
  // `form` says in words what `check` accepts.
  KeyBuilder& syntax(std::optional<std::string> (*check)(const std::string&), std::string form) {
    key_.syntax = check;
    return put(key_.form, std::move(form));
  }
  // Bounds of an integer or of each item of an integer list.
  KeyBuilder& integers(std::int64_t low, std::int64_t high, std::int64_t multiple_of = 1) {
    return put(key_.integers, IntegerBounds{low, high, multiple_of});
  }
  KeyBuilder& numbers(double low, double high) { return put(key_.numbers, NumberBounds{low, high}); }
  // Without the lower, without the upper end.
  KeyBuilder& above(double low, double high) { return put(key_.numbers, NumberBounds{low, high, true, false}); }
  KeyBuilder& below(double low, double high) { return put(key_.numbers, NumberBounds{low, high, false, true}); }
  KeyBuilder& at_most(std::size_t items) { return put(key_.max_items, items); }
  KeyBuilder& derived(std::string note, void (*derive)(Config&)) {
    key_.derive_default = derive;
    return put(key_.default_note, std::move(note));
  }

 private:
  template <class Field, class Given>
  KeyBuilder& put(Field& field, Given&& given) {
    field = std::forward<Given>(given);
    return *this;
  }

  Key& key_;
};

template <class Section>
class SectionBuilder {
 public:
  SectionBuilder(std::string name, Section Config::*section, std::vector<Key>& list)
      : name_(std::move(name)), section_(section), list_(list) {}

  // The builder is good until the next key.
  template <class Member>
  KeyBuilder key(const std::string& leaf, Member Section::*member) {
    Key key;
    key.name = name_ + "." + leaf;
    key.type = key_type<Member>();
    if constexpr (std::is_same_v<Member, Duration>) key.unit = "s";
    if constexpr (std::is_enum_v<Member>) {
      key.choices.assign(Words<Member>::kList.begin(), Words<Member>::kList.end());
    }
    Section Config::*const section = section_;
    key.get = [section, member](const Config& config) { return to_value((config.*section).*member); };
    key.set = [section, member](Config& config, const Value& value) {
      (config.*section).*member = from_value<Member>(value);
    };
    list_.push_back(std::move(key));
    return KeyBuilder(list_.back());
  }

 private:
  std::string name_;
  Section Config::*section_;
  std::vector<Key>& list_;
};

}  // namespace parley

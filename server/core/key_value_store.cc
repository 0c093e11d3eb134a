#include "server/core/key_value_store.h"

#include "common/wire/limits.h"

namespace parley {

KeyValueStore::SetResult KeyValueStore::set(const std::string& key, std::vector<std::uint8_t> value) {
  if (value.size() > limits::kStoreValueBytesMax || values_.size() >= limits::kStoreKeysMax) return {false, {}};
  values_[key] = std::move(value);
  SetResult result;
  if (auto waiting = waiting_.extract(key)) result.waiting = std::move(waiting.mapped());
  return result;
}

const std::vector<std::uint8_t>* KeyValueStore::get(const std::string& key, Reader reader) {
  const auto found = values_.find(key);
  if (found != values_.end()) return &found->second;
  if (waiting_.size() < limits::kStoreKeysMax) waiting_[key].insert(reader);
  return nullptr;
}

}  // namespace parley

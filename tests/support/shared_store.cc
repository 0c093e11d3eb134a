#include "tests/support/shared_store.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <new>
#include <sys/mman.h>

namespace parley::testing {
namespace {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

SharedStore::SharedStore() {
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PARLEY_CHECK(memory != MAP_FAILED, "mmap of {} bytes", sizeof(Table));
  table_ = static_cast<Table*>(memory);
  pthread_mutexattr_t mutex_kind;
  pthread_mutexattr_init(&mutex_kind);
  pthread_mutexattr_setpshared(&mutex_kind, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&table_->mutex, &mutex_kind);
  pthread_mutexattr_destroy(&mutex_kind);
  pthread_condattr_t condition_kind;
  pthread_condattr_init(&condition_kind);
  pthread_condattr_setpshared(&condition_kind, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&condition_kind, CLOCK_MONOTONIC);
  pthread_cond_init(&table_->changed, &condition_kind);
  pthread_condattr_destroy(&condition_kind);
}

SharedStore::~SharedStore() { munmap(table_, sizeof(Table)); }

const SharedStore::Entry* SharedStore::find(const std::string& key) const {
  for (std::size_t i = 0; i < table_->count; ++i) {
    if (key == table_->entries[i].key.data()) return &table_->entries[i];
  }
  return nullptr;
}

void SharedStore::set(const std::string& key, std::span<const std::byte> value) {
  const Lock lock(table_->mutex);
  PARLEY_CHECK(find(key) == nullptr, "{} is set twice", key);
  PARLEY_CHECK(table_->count < table_->entries.size(), "the test's store is full");
  Entry& entry = table_->entries[table_->count];
  PARLEY_CHECK(key.size() < entry.key.size() && value.size() <= entry.value.size(), "{} with {} bytes", key,
               value.size());
  std::memcpy(entry.key.data(), key.c_str(), key.size() + 1);
  if (!value.empty()) std::memcpy(entry.value.data(), value.data(), value.size());
  entry.size = value.size();
  ++table_->count;
  pthread_cond_broadcast(&table_->changed);
}

std::vector<std::byte> SharedStore::get(const std::string& key, Duration timeout) {
  timespec deadline{};
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  const auto nanoseconds = deadline.tv_nsec + timeout.count();
  deadline.tv_sec += nanoseconds / 1'000'000'000;
  deadline.tv_nsec = nanoseconds % 1'000'000'000;
  const Lock lock(table_->mutex);
  const Entry* entry = find(key);
  while (entry == nullptr) {
    if (pthread_cond_timedwait(&table_->changed, &table_->mutex, &deadline) == ETIMEDOUT)
      throw RunError(fmt::format("nobody set {} within {} s", key, to_seconds(timeout)));
    entry = find(key);
  }
  return {entry->value.begin(), entry->value.begin() + static_cast<std::ptrdiff_t>(entry->size)};
}

std::vector<std::string> SharedStore::keys() const {
  const Lock lock(table_->mutex);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < table_->count; ++i) all.emplace_back(table_->entries[i].key.data());
  return all;
}

}  // namespace parley::testing

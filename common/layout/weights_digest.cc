#include "common/layout/weights_digest.h"

#include "common/base/log.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <memory>

namespace parley {

// Hosts of the other byte order would have to swap; there is none among those that LibTorch supports.
static_assert(std::endian::native == std::endian::little);

std::string weights_digest(const Layout& layout, std::span<const float> weights) {
  PARLEY_CHECK(weights.size() == layout.arena_count(), "{} of {} values", weights.size(), layout.arena_count());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (std::uint32_t index = 0; index < layout.tensors().size(); ++index) {
    if (layout.tensor(index).kind != TensorKind::parameter) continue;
    const TensorPlace& where = layout.place(index);
    const auto values = weights.subspan(where.offset, where.count);
    XXH3_128bits_update(state.get(), values.data(), values.size_bytes());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace parley

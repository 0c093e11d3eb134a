#include "common/wire/frame.h"

#include <algorithm>

namespace parley {

Frame Frame::copy(std::span<const std::byte> bytes) {
  auto* memory = new std::byte[bytes.size()];
  std::ranges::copy(bytes, memory);
  return {{memory, bytes.size()}, [](void* context) { delete[] static_cast<std::byte*>(context); }, memory};
}

}  // namespace parley

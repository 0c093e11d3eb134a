// Every upper bound of the protocol, in one place.
#pragma once

#include <cstdint>

namespace parley::limits {

// Version of the protocol; a peer with another one gets Error and a reason.
inline constexpr std::uint16_t kProtocol = 1;

// One frame: a slice is at most 64 MiB; a header frame can describe a model of millions of tensors.
inline constexpr std::uint64_t kSliceBytesMax = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kFrameBytesMax = std::uint64_t{1} << 30;
// FlatBuffers' own ceiling, less a page.
static_assert(kFrameBytesMax < (std::uint64_t{1} << 31));

// The FlatBuffers verifier: its default of a million tables refuses honest large messages.
inline constexpr std::uint32_t kVerifierTablesMax = 100'000'000;
inline constexpr std::uint32_t kVerifierDepthMax = 64;

// Frames of one message: the header and one a slice.
inline constexpr std::uint64_t kFramesMax = 65'536;

// Cluster size.
inline constexpr std::uint32_t kServersMax = 4096;
inline constexpr std::uint32_t kWorkersMax = 4096;
inline constexpr std::uint32_t kShardsPerServerMax = 64;

// Rendezvous store: keys and bytes together.
inline constexpr std::uint64_t kStoreKeysMax = 1'000'000;
inline constexpr std::uint64_t kStoreValueBytesMax = std::uint64_t{1} << 20;

}  // namespace parley::limits

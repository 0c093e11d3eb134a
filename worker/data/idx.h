// IDX files, the format of MNIST and its relatives: a big-endian header (magic, then one 32-bit count a dimension) and
// one unsigned byte a pixel or label. Plain or gzip, told apart by content.
//
// Every fault of a file is a UsageError (exit status 2: the operator named the file), one line that says which file,
// what was found and what was expected. Sizes are checked before anything is allocated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace parley {

enum class IdxKind {
  images,  // magic 0x00000803: count, rows, columns
  labels,  // magic 0x00000801: count
};

// More payload than this is refused, whatever the header says: far above every set in this format.
inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{2} << 30;

struct IdxFile {
  std::filesystem::path path;
  std::uint32_t count = 0;    // samples, at least 1
  std::uint32_t rows = 1;     // of an image; 1 for labels
  std::uint32_t columns = 1;  // of an image; 1 for labels
  // count * rows * columns bytes, sample after sample, row after row.
  std::vector<std::uint8_t> bytes;
};

// The file of this name ("train-images-idx3-ubyte") in `directory`, as it is, with ".gz", or with a dot in place of the
// hyphen before "idx"; a plain file goes before a compressed one. UsageError: none of them is there.
std::filesystem::path find_idx(const std::filesystem::path& directory, std::string_view name);

// Reads and checks a whole file.
IdxFile read_idx(const std::filesystem::path& path, IdxKind kind);

}  // namespace parley

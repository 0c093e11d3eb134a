#include "worker/data/idx.h"

#include "common/base/error.h"
#include "worker/data/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <utility>

namespace parley {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;

const char* kind_name(IdxKind kind) { return kind == IdxKind::images ? "images" : "labels"; }
std::uint32_t magic_of(IdxKind kind) { return kind == IdxKind::images ? kImagesMagic : kLabelsMagic; }

std::uint32_t big_endian(std::span<const std::uint8_t, 4> b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& fault) {
  throw UsageError(fmt::format("{}: {}", path.string(), fault));
}

// What a file with the wrong magic probably is; empty if it looks like nothing we know.
std::string guess(std::uint32_t magic, IdxKind expected) {
  const IdxKind other = expected == IdxKind::images ? IdxKind::labels : IdxKind::images;
  if (magic == magic_of(other)) {
    return fmt::format("this is a file of {}: are the image and label files swapped?", kind_name(other));
  }
  if (__builtin_bswap32(magic) == kImagesMagic || __builtin_bswap32(magic) == kLabelsMagic) {
    return "the header is little-endian, IDX is big-endian";
  }
  if (magic >> 16 == 0x1f8b) return "the file was compressed twice";
  if (magic >> 16 == 0) {
    return fmt::format("an IDX file of element type 0x{:02x} with {} dimensions", magic >> 8, magic & 0xff);
  }
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const auto byte = static_cast<unsigned char>(magic >> shift & 0xff);
    if (std::isprint(byte) == 0) return {};
    text += static_cast<char>(byte);
  }
  return fmt::format("the file begins with the text '{}'", text);
}

// One field of the header; `what` names it in the message about a file that ends before it.
std::uint32_t read_field(ByteSource& source, const char* what, int offset) {
  std::array<std::uint8_t, 4> field{};
  if (const std::size_t n = source.read(field); n < field.size()) {
    refuse(source.path(),
           fmt::format("truncated: the data end at byte {}, inside the header; expected {} in bytes {} to {}",
                       offset + static_cast<int>(n), what, offset, offset + 3));
  }
  return big_endian(field);
}

struct Header {
  std::uint32_t count = 0;
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  std::uint64_t bytes = 0;    // of the header itself
  std::uint64_t payload = 0;  // count * rows * columns
};

std::string describe(const Header& header, IdxKind kind) {
  if (kind == IdxKind::labels) return fmt::format("{} labels", header.count);
  return fmt::format("{} images of {} x {}", header.count, header.rows, header.columns);
}

Header read_header(ByteSource& source, IdxKind kind) {
  const std::uint32_t magic = read_field(source, "the magic number", 0);
  if (magic != magic_of(kind)) {
    const std::string hint = guess(magic, kind);
    refuse(source.path(), fmt::format("magic number 0x{:08x} at byte 0, expected 0x{:08x} ({}){}{}", magic,
                                      magic_of(kind), kind_name(kind), hint.empty() ? "" : "; ", hint));
  }
  Header header;
  header.count = read_field(source, "the number of samples", 4);
  header.bytes = 8;
  if (kind == IdxKind::images) {
    header.rows = read_field(source, "the number of rows", 8);
    header.columns = read_field(source, "the number of columns", 12);
    header.bytes = 16;
  }
  if (header.count == 0) refuse(source.path(), "holds 0 samples (byte 4); expected at least one");
  if (header.rows == 0 || header.columns == 0) {
    refuse(source.path(), fmt::format("images of {} x {} pixels (bytes 8 to 15); expected at least 1 x 1", header.rows,
                                      header.columns));
  }
  const std::uint64_t count_rows = std::uint64_t{header.count} * header.rows;
  if (__builtin_mul_overflow(count_rows, header.columns, &header.payload) || header.payload > kMaxIdxBytes) {
    refuse(source.path(), fmt::format("the header declares {}, more than the limit of {} bytes", describe(header, kind),
                                      kMaxIdxBytes));
  }
  return header;
}

// Before the payload is allocated: can the file hold what its header declares? A plain file tells exactly.
void check_size(const ByteSource& source, const Header& header, IdxKind kind) {
  const std::uint64_t expected = header.bytes + header.payload;
  if (source.compressed()) {
    if (expected > source.most_bytes()) {
      refuse(source.path(),
             fmt::format("truncated or damaged: {} bytes of gzip data hold at most {} bytes, expected {} "
                         "for {}",
                         source.file_bytes(), source.most_bytes(), expected, describe(header, kind)));
    }
    return;
  }
  if (source.file_bytes() < expected) {
    refuse(source.path(), fmt::format("truncated: {} bytes, expected {} for {}", source.file_bytes(), expected,
                                      describe(header, kind)));
  }
  if (source.file_bytes() > expected) {
    refuse(source.path(), fmt::format("{} trailing bytes from byte {}: the file has {} bytes, expected {} for {}",
                                      source.file_bytes() - expected, expected, source.file_bytes(), expected,
                                      describe(header, kind)));
  }
}

}  // namespace

std::filesystem::path find_idx(const std::filesystem::path& directory, std::string_view name) {
  std::string dotted(name);
  if (const auto hyphen = dotted.find("-idx"); hyphen != std::string::npos) dotted[hyphen] = '.';
  const std::array candidates = {std::string(name), dotted, std::string(name) + ".gz", dotted + ".gz"};
  for (const std::string& candidate : candidates) {
    std::error_code ignored;
    if (std::filesystem::exists(directory / candidate, ignored)) return directory / candidate;
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored)) {
    refuse(directory, "no such directory; expected the folder of the data files");
  }
  refuse(directory, fmt::format("no file {} in this folder, nor {}, {} or {}", candidates[0], candidates[1],
                                candidates[2], candidates[3]));
}

IdxFile read_idx(const std::filesystem::path& path, IdxKind kind) {
  ByteSource source(path);
  const Header header = read_header(source, kind);
  check_size(source, header, kind);

  IdxFile file{.path = path, .count = header.count, .rows = header.rows, .columns = header.columns, .bytes = {}};
  file.bytes.resize(header.payload);
  if (const std::size_t n = source.read(file.bytes); n < file.bytes.size()) {
    refuse(path, fmt::format("truncated: the data end at byte {}, expected {} for {}", header.bytes + n,
                             header.bytes + header.payload, describe(header, kind)));
  }
  // One read further: the end must be here, and a gzip file's checksum is verified on the way.
  std::array<std::uint8_t, 1> beyond{};
  if (source.read(beyond) != 0) {
    refuse(path, fmt::format("trailing bytes from byte {}: expected the end after {}", header.bytes + header.payload,
                             describe(header, kind)));
  }
  return file;
}

}  // namespace parley

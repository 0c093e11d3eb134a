// A data file as a stream of bytes, plain or gzip: which of the two it is, its first two bytes tell, not its name. What
// is read is never larger than what was asked for, so a small file that inflates to gigabytes costs no memory.
//
// Belongs to one thread. Data files are named by the operator, so every fault of theirs is a UsageError (exit status
// 2): one line with the file, what was found and what was expected. A read that the system refuses is a RunError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace parley {

class ByteSource {
 public:
  // Opens a regular file. UsageError: it cannot be opened, is no regular file, or is empty.
  explicit ByteSource(std::filesystem::path path);
  ~ByteSource();
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;

  const std::filesystem::path& path() const;
  bool compressed() const;
  // Size on disk: of the compressed bytes for a gzip file.
  std::uint64_t file_bytes() const;
  // No more bytes than this can come out of the file (deflate shrinks by 1032 to 1 at best); exact for a plain one.
  std::uint64_t most_bytes() const;

  // Fills `out`; returns how much of it was filled, which is less than asked for only at the end of the data. A read
  // beyond the last byte of a gzip file also checks its checksum. UsageError: damaged or cut gzip data, or bytes that
  // are not gzip after its end.
  std::size_t read(std::span<std::uint8_t> out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace parley

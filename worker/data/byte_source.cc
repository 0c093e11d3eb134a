#include "worker/data/byte_source.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace parley {
namespace {

constexpr std::uint8_t kGzipMagic[2] = {0x1f, 0x8b};
// 15: the largest window; 16: a gzip header and trailer, not zlib's own.
constexpr int kGzipWindowBits = 15 + 16;
constexpr std::uint64_t kMostInflation = 1032;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string system_text(int error) { return std::generic_category().message(error); }

}  // namespace

struct ByteSource::Stream {
  std::filesystem::path path;
  std::unique_ptr<std::FILE, CloseFile> file;
  std::uint64_t file_bytes = 0;
  bool compressed = false;
  bool member_ended = false;  // gzip: at the end of a member; another may follow

  std::array<std::uint8_t, 1 << 16> buffer{};  // what was read from the file and not used yet
  std::size_t used = 0;
  std::size_t filled = 0;
  std::uint64_t offset = 0;  // in the file, of buffer[used]
  z_stream inflater{};

  explicit Stream(std::filesystem::path where) : path(std::move(where)) {
    // Looked at before it is opened: opening a pipe would wait for its writer.
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw UsageError(fmt::format("{}: is not a regular file; expected a data file", path.string()));
    }
    file.reset(std::fopen(path.c_str(), "rb"));
    if (!file) {
      throw UsageError(fmt::format("{}: cannot be opened: {}", path.string(), system_text(errno)));
    }
    struct stat opened {};
    if (fstat(fileno(file.get()), &opened) != 0) {
      throw RunError(fmt::format("{}: cannot be examined: {}", path.string(), system_text(errno)));
    }
    file_bytes = static_cast<std::uint64_t>(opened.st_size);
    if (!refill()) throw UsageError(fmt::format("{}: the file is empty (0 bytes)", path.string()));
    compressed = filled >= 2 && std::equal(std::begin(kGzipMagic), std::end(kGzipMagic), buffer.begin());
    if (compressed) {
      PARLEY_CHECK(inflateInit2(&inflater, kGzipWindowBits) == Z_OK, "zlib {} does not start", zlibVersion());
    }
  }
  ~Stream() {
    if (compressed) inflateEnd(&inflater);
  }
  // z_stream points back into itself.
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Replaces a used-up buffer by the next bytes of the file; false at its end.
  bool refill() {
    used = 0;
    filled = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (filled == 0 && std::ferror(file.get()) != 0) {
      throw RunError(fmt::format("{}: reading failed at byte {}: {}", path.string(), offset, system_text(errno)));
    }
    return filled > 0;
  }

  std::size_t read_plain(std::span<std::uint8_t> out) {
    std::size_t done = 0;
    while (done < out.size() && (used < filled || refill())) {
      const std::size_t n = std::min(out.size() - done, filled - used);
      std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(used), n, out.data() + done);
      used += n;
      offset += n;
      done += n;
    }
    return done;
  }

  std::size_t read_gzip(std::span<std::uint8_t> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      const bool more = used < filled || refill();
      if (member_ended) {
        if (!more) break;
        start_next_member();
      } else if (!more) {
        throw UsageError(
            fmt::format("{}: truncated: the gzip data stop at byte {} without their end", path.string(), offset));
      }
      done += inflate_some(out.subspan(done));
    }
    return done;
  }

  // gzip files may be joined end to end; anything else after the end is a fault.
  void start_next_member() {
    if (buffer[used] != kGzipMagic[0]) {
      throw UsageError(fmt::format("{}: {} bytes after the end of the gzip data at byte {}; expected none",
                                   path.string(), file_bytes - offset, offset));
    }
    PARLEY_CHECK(inflateReset(&inflater) == Z_OK, "zlib {} does not restart", zlibVersion());
    member_ended = false;
  }

  std::size_t inflate_some(std::span<std::uint8_t> out) {
    const std::size_t room = std::min<std::size_t>(out.size(), std::numeric_limits<uInt>::max());
    inflater.next_in = buffer.data() + used;
    inflater.avail_in = static_cast<uInt>(filled - used);
    inflater.next_out = out.data();
    inflater.avail_out = static_cast<uInt>(room);
    const int status = inflate(&inflater, Z_NO_FLUSH);
    const std::size_t taken = filled - used - inflater.avail_in;
    used += taken;
    offset += taken;
    if (status == Z_STREAM_END) {
      member_ended = true;
    } else if (status != Z_OK) {
      throw UsageError(fmt::format("{}: damaged gzip data near byte {}: {}", path.string(), offset,
                                   inflater.msg ? inflater.msg : zError(status)));
    }
    return room - inflater.avail_out;
  }
};

ByteSource::ByteSource(std::filesystem::path path) : stream_(std::make_unique<Stream>(std::move(path))) {}
ByteSource::~ByteSource() = default;
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;

const std::filesystem::path& ByteSource::path() const { return stream_->path; }
bool ByteSource::compressed() const { return stream_->compressed; }
std::uint64_t ByteSource::file_bytes() const { return stream_->file_bytes; }

std::uint64_t ByteSource::most_bytes() const {
  return stream_->compressed ? stream_->file_bytes * kMostInflation : stream_->file_bytes;
}

std::size_t ByteSource::read(std::span<std::uint8_t> out) {
  return stream_->compressed ? stream_->read_gzip(out) : stream_->read_plain(out);
}

}  // namespace parley

#include "worker/data/idx.h"

#include "common/base/error.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace parley {
namespace {

namespace fs = std::filesystem;

std::string field(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}
std::string images_header(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  return field(0x803) + field(count) + field(rows) + field(columns);
}

std::string gzip(const std::string& plain) {
  z_stream z{};
  deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, plain.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class Idx : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "parley_idx_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& bytes, const std::string& name = "file") {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  // The message of the refusal, without the folder in front of the file's name; "accepted" if there was none.
  std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const UsageError& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.rfind(folder_.string(), 0), 0U) << text << ": must begin with the file";
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text.substr(std::min(text.size(), folder_.string().size() + 1));
    }
    return "accepted";
  }
  std::string refusal(const std::string& bytes, IdxKind kind) {
    const fs::path path = write(bytes);
    return refusal([&] { read_idx(path, kind); });
  }

  fs::path folder_;
  const std::string images_ = images_header(2, 2, 3) + "abcdefghijkl";
  const std::string labels_ = field(0x801) + field(3) + std::string("\0\1\2", 3);
};

TEST_F(Idx, ReadsImages) {
  const IdxFile file = read_idx(write(images_), IdxKind::images);
  EXPECT_EQ(file.count, 2U);
  EXPECT_EQ(file.rows, 2U);
  EXPECT_EQ(file.columns, 3U);
  EXPECT_EQ(std::string(file.bytes.begin(), file.bytes.end()), "abcdefghijkl");
}

TEST_F(Idx, ReadsLabels) {
  const IdxFile file = read_idx(write(labels_), IdxKind::labels);
  EXPECT_EQ(file.count, 3U);
  EXPECT_EQ(file.bytes, (std::vector<std::uint8_t>{0, 1, 2}));
}

TEST_F(Idx, TellsGzipByContentNotByName) {
  EXPECT_EQ(read_idx(write(gzip(images_), "without_ending"), IdxKind::images).bytes.size(), 12U);
  EXPECT_EQ(read_idx(write(images_, "plain.gz"), IdxKind::images).bytes.size(), 12U);
}

TEST_F(Idx, ReadsGzipLargerThanItsBuffer) {
  std::string pixels(300 * 1000, '\0');
  std::uint32_t noise = 1;
  for (char& p : pixels) p = static_cast<char>((noise = noise * 1664525 + 1013904223) >> 24);
  const IdxFile file = read_idx(write(gzip(images_header(300, 10, 100) + pixels)), IdxKind::images);
  EXPECT_EQ(std::string(file.bytes.begin(), file.bytes.end()), pixels);
}

TEST_F(Idx, ReadsJoinedGzipMembers) {
  const auto path = write(gzip(images_.substr(0, 20)) + gzip(images_.substr(20)));
  EXPECT_EQ(read_idx(path, IdxKind::images).bytes.size(), 12U);
}

TEST_F(Idx, FindsEveryUsualName) {
  const std::string name = "train-images-idx3-ubyte";
  for (const char* there : {"train-images.idx3-ubyte.gz", "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte",
                            "train-images-idx3-ubyte"}) {
    write(images_, there);
    EXPECT_EQ(find_idx(folder_, name).filename(), there) << "the later ones go before the earlier ones";
  }
}

TEST_F(Idx, NamesWhatIsMissing) {
  EXPECT_EQ(refusal([&] { find_idx(folder_, "t10k-labels-idx1-ubyte"); }),
            " no file t10k-labels-idx1-ubyte in this folder, nor t10k-labels.idx1-ubyte, "
            "t10k-labels-idx1-ubyte.gz or "
            "t10k-labels.idx1-ubyte.gz");
  EXPECT_EQ(refusal([&] { find_idx(folder_ / "nowhere", "t10k-labels-idx1-ubyte"); }),
            "nowhere: no such directory; expected the folder of the data files");
  EXPECT_EQ(refusal([&] { read_idx(folder_ / "nothing", IdxKind::images); }),
            "nothing: cannot be opened: No such file or directory");
  EXPECT_EQ(refusal([&] { read_idx(folder_ / ".", IdxKind::images); }),
            ".: is not a regular file; expected a data file");
}

TEST_F(Idx, NamesSwappedFiles) {
  EXPECT_EQ(refusal(labels_, IdxKind::images),
            "file: magic number 0x00000801 at byte 0, expected 0x00000803 (images); this is a file "
            "of labels: are the "
            "image and label files swapped?");
  EXPECT_EQ(refusal(gzip(images_), IdxKind::labels),
            "file: magic number 0x00000803 at byte 0, expected 0x00000801 (labels); this is a file "
            "of images: are the "
            "image and label files swapped?");
}

TEST_F(Idx, NamesOtherMagicNumbers) {
  const std::string expected = ", expected 0x00000803 (images)";
  EXPECT_EQ(refusal(std::string("\x03\x08\0\0", 4) + images_.substr(4), IdxKind::images),
            "file: magic number 0x03080000 at byte 0" + expected + "; the header is little-endian, IDX is big-endian");
  EXPECT_EQ(
      refusal(field(0x0d03) + images_.substr(4), IdxKind::images),
      "file: magic number 0x00000d03 at byte 0" + expected + "; an IDX file of element type 0x0d with 3 dimensions");
  EXPECT_EQ(refusal("<!DOCTYPE html>", IdxKind::images),
            "file: magic number 0x3c21444f at byte 0" + expected + "; the file begins with the text '<!DO'");
  EXPECT_EQ(refusal(gzip(gzip(images_)), IdxKind::images),
            "file: magic number 0x1f8b0800 at byte 0" + expected + "; the file was compressed twice");
  EXPECT_EQ(refusal("\x89PNG\r\n", IdxKind::images), "file: magic number 0x89504e47 at byte 0" + expected);
}

TEST_F(Idx, RefusesEmptyFiles) {
  EXPECT_EQ(refusal("", IdxKind::images), "file: the file is empty (0 bytes)");
  EXPECT_EQ(refusal(gzip(""), IdxKind::images),
            "file: truncated: the data end at byte 0, inside the header; expected the magic number "
            "in bytes 0 to 3");
  EXPECT_EQ(refusal(images_header(0, 28, 28), IdxKind::images),
            "file: holds 0 samples (byte 4); expected at least one");
  EXPECT_EQ(refusal(images_header(1, 28, 0), IdxKind::images),
            "file: images of 28 x 0 pixels (bytes 8 to 15); expected at least 1 x 1");
}

TEST_F(Idx, RefusesEveryTruncation) {
  EXPECT_EQ(refusal(images_.substr(0, 10), IdxKind::images),
            "file: truncated: the data end at byte 10, inside the header; expected the number of "
            "rows in bytes 8 to 11");
  EXPECT_EQ(refusal(images_.substr(0, 27), IdxKind::images),
            "file: truncated: 27 bytes, expected 28 for 2 images of 2 x 3");
  EXPECT_EQ(refusal(gzip(images_.substr(0, 27)), IdxKind::images),
            "file: truncated: the data end at byte 27, expected 28 for 2 images of 2 x 3");
  for (std::size_t n = 0; n < images_.size(); ++n) {
    EXPECT_NE(refusal(images_.substr(0, n), IdxKind::images), "accepted") << n;
  }
  const std::string packed = gzip(images_);
  for (std::size_t n = 0; n < packed.size(); ++n) {
    EXPECT_NE(refusal(packed.substr(0, n), IdxKind::images), "accepted") << n;
  }
  EXPECT_EQ(refusal(packed.substr(0, packed.size() - 1), IdxKind::images),
            "file: truncated: the gzip data stop at byte " + std::to_string(packed.size() - 1) + " without their end");
}

TEST_F(Idx, RefusesTrailingBytes) {
  EXPECT_EQ(refusal(images_ + "xy", IdxKind::images),
            "file: 2 trailing bytes from byte 28: the file has 30 bytes, expected 28 for 2 images "
            "of 2 x 3");
  EXPECT_EQ(refusal(gzip(images_ + "xy"), IdxKind::images),
            "file: trailing bytes from byte 28: expected the end after 2 images of 2 x 3");
  const std::string packed = gzip(images_);
  EXPECT_EQ(refusal(packed + "xy", IdxKind::images), "file: 2 bytes after the end of the gzip data at byte " +
                                                         std::to_string(packed.size()) + "; expected none");
}

TEST_F(Idx, RefusesDamagedGzip) {
  std::string packed = gzip(images_);
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // in the checksum
  EXPECT_NE(refusal(packed, IdxKind::images).find("damaged gzip data near byte"), std::string::npos);
  EXPECT_NE(refusal("\x1f\x8b\x63nonsense", IdxKind::images).find("damaged gzip data near byte"), std::string::npos);
}

// A lying header must not make us allocate: the limit on address space would turn that into bad_alloc.
TEST_F(Idx, ChecksSizesBeforeItAllocates) {
  EXPECT_EQ(refusal(images_header(~0U, ~0U, ~0U), IdxKind::images),
            "file: the header declares 4294967295 images of 4294967295 x 4294967295, more than the "
            "limit of 2147483648 "
            "bytes");
  EXPECT_EQ(refusal(images_header(2000000, 28, 28), IdxKind::images),
            "file: truncated: 16 bytes, expected 1568000016 for 2000000 images of 28 x 28");
  const std::string packed = gzip(images_header(2000000, 28, 28));
  EXPECT_EQ(refusal(packed, IdxKind::images),
            "file: truncated or damaged: " + std::to_string(packed.size()) + " bytes of gzip data hold at most " +
                std::to_string(packed.size() * 1032) + " bytes, expected 1568000016 for 2000000 images of 28 x 28");
}

}  // namespace
}  // namespace parley

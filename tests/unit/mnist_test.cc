#include "worker/data/mnist.h"

#include "common/base/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace parley {
namespace {

namespace fs = std::filesystem;

std::string field(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}
// Image i is filled with the value 10 * i.
std::string images(std::uint32_t count, std::uint32_t side = 28) {
  std::string file = field(0x803) + field(count) + field(side) + field(side);
  for (std::uint32_t i = 0; i < count; ++i) file += std::string(side * side, static_cast<char>(10 * i));
  return file;
}
std::string labels(const std::string& values) {
  return field(0x801) + field(static_cast<std::uint32_t>(values.size())) + values;
}

class Mnist : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "parley_mnist_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    write("train-images-idx3-ubyte", images(4));
    write("train-labels-idx1-ubyte", labels("\1\2\3\4"));
    write("t10k-images.idx3-ubyte", images(2));
    write("t10k-labels.idx1-ubyte", labels("\7\x9"));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string refusal() {
    try {
      load_mnist(folder_, MnistPart::train);
    } catch (const UsageError& e) {
      return std::string(e.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  }

  fs::path folder_;
};

TEST_F(Mnist, LoadsBothParts) {
  const auto train = load_mnist(folder_, MnistPart::train);
  EXPECT_EQ(train->size(), 4U);
  EXPECT_EQ(train->shape(), (SampleShape{1, 28, 28}));
  EXPECT_EQ(train->classes(), 10U);
  EXPECT_EQ(load_mnist(folder_, MnistPart::test)->size(), 2U);
}

TEST_F(Mnist, GathersNormalisedSamplesInTheOrderAskedFor) {
  const auto train = load_mnist(folder_, MnistPart::train);
  const std::vector<std::uint64_t> ids = {3, 0, 3};
  std::vector<float> inputs(3 * 784, -99.0F);
  std::vector<std::int64_t> classes(3, -1);
  train->gather(ids, inputs, classes);
  EXPECT_EQ(classes, (std::vector<std::int64_t>{4, 1, 4}));
  const float dark = -0.1307F / 0.3081F;
  const float bright = (30.0F / 255.0F - 0.1307F) / 0.3081F;
  for (std::size_t i = 0; i < inputs.size(); ++i) ASSERT_EQ(inputs[i], i / 784 == 1 ? dark : bright) << i;
  train->gather({}, {}, {});  // the share of a rank without samples
}

TEST_F(Mnist, RefusesSwappedFiles) {
  fs::rename(folder_ / "train-images-idx3-ubyte", folder_ / "aside");
  fs::rename(folder_ / "train-labels-idx1-ubyte", folder_ / "train-images-idx3-ubyte");
  fs::rename(folder_ / "aside", folder_ / "train-labels-idx1-ubyte");
  EXPECT_EQ(refusal(),
            "train-images-idx3-ubyte: magic number 0x00000801 at byte 0, expected 0x00000803 "
            "(images); this is a file "
            "of labels: are the image and label files swapped?");
}

TEST_F(Mnist, RefusesOtherCounts) {
  write("train-labels-idx1-ubyte", labels("\1\2\3"));
  EXPECT_EQ(refusal(),
            "train-labels-idx1-ubyte: 3 labels, expected 4 as there are images in "
            "train-images-idx3-ubyte");
}

TEST_F(Mnist, RefusesALabelOfTen) {
  write("train-labels-idx1-ubyte", labels("\1\2\x0a\4"));
  EXPECT_EQ(refusal(), "train-labels-idx1-ubyte: label 10 of sample 2 (byte 10 of the data), expected 0 to 9");
}

TEST_F(Mnist, RefusesOtherImageSizes) {
  write("train-images-idx3-ubyte", images(4, 32));
  EXPECT_EQ(refusal(), "train-images-idx3-ubyte: images of 32 x 32 pixels, expected 28 x 28");
}

TEST_F(Mnist, RefusesAMissingFile) {
  fs::remove(folder_ / "train-labels-idx1-ubyte");
  EXPECT_NE(refusal().find("no file train-labels-idx1-ubyte in this folder"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace parley

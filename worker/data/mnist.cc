#include "worker/data/mnist.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "worker/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace parley {
namespace {

constexpr std::uint32_t kSide = 28;
constexpr std::uint32_t kClasses = 10;
constexpr std::uint64_t kLabelHeaderBytes = 8;

// A pixel has 256 values, so normalising is a look-up.
std::array<float, 256> normalised_pixels() {
  std::array<float, 256> table{};
  for (std::size_t p = 0; p < table.size(); ++p) {
    table[p] = (static_cast<float>(p) / 255.0F - kMnistMean) / kMnistDeviation;
  }
  return table;
}

class MnistSet final : public Dataset {
 public:
  MnistSet(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
      : normalised_(normalised_pixels()), pixels_(std::move(pixels)), labels_(std::move(labels)) {}

  std::uint64_t size() const override { return labels_.size(); }
  SampleShape shape() const override { return {.channels = 1, .height = kSide, .width = kSide}; }
  std::uint32_t classes() const override { return kClasses; }

  void gather(std::span<const std::uint64_t> ids, std::span<float> inputs,
              std::span<std::int64_t> labels) const override {
    constexpr std::size_t kPixels = std::size_t{kSide} * kSide;
    PARLEY_CHECK(inputs.size() == ids.size() * kPixels && labels.size() == ids.size(),
                 "{} samples into {} values and {} labels", ids.size(), inputs.size(), labels.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      PARLEY_CHECK(ids[i] < labels_.size(), "sample {} of {}", ids[i], labels_.size());
      const std::uint8_t* from = pixels_.data() + ids[i] * kPixels;
      std::transform(from, from + kPixels, inputs.data() + i * kPixels,
                     [this](std::uint8_t pixel) { return normalised_[pixel]; });
      labels[i] = labels_[ids[i]];
    }
  }

 private:
  std::array<float, 256> normalised_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

void check_labels(const IdxFile& labels) {
  const auto bad = std::find_if(labels.bytes.begin(), labels.bytes.end(), [](std::uint8_t l) { return l >= kClasses; });
  if (bad == labels.bytes.end()) return;
  const auto sample = static_cast<std::uint64_t>(bad - labels.bytes.begin());
  throw UsageError(fmt::format("{}: label {} of sample {} (byte {} of the data), expected 0 to {}",
                               labels.path.string(), *bad, sample, kLabelHeaderBytes + sample, kClasses - 1));
}

}  // namespace

std::unique_ptr<Dataset> load_mnist(const std::filesystem::path& directory, MnistPart part) {
  const std::string prefix = part == MnistPart::train ? "train" : "t10k";
  // Both are looked for before either is read: a missing file is then told at once.
  const auto images_path = find_idx(directory, prefix + "-images-idx3-ubyte");
  const auto labels_path = find_idx(directory, prefix + "-labels-idx1-ubyte");
  IdxFile images = read_idx(images_path, IdxKind::images);
  IdxFile labels = read_idx(labels_path, IdxKind::labels);
  if (images.rows != kSide || images.columns != kSide) {
    throw UsageError(fmt::format("{}: images of {} x {} pixels, expected {} x {}", images_path.string(), images.rows,
                                 images.columns, kSide, kSide));
  }
  if (images.count != labels.count) {
    throw UsageError(fmt::format("{}: {} labels, expected {} as there are images in {}", labels_path.string(),
                                 labels.count, images.count, images_path.filename().string()));
  }
  check_labels(labels);
  return std::make_unique<MnistSet>(std::move(images.bytes), std::move(labels.bytes));
}

}  // namespace parley

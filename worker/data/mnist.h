// The MNIST digits (`data.kind = "mnist"`): four IDX files in one folder, 28 x 28 grey images of ten classes. The sets
// that share its files and shape (Fashion-MNIST, the 5,000-image subset of scripts/get-data) load as well.
#pragma once

#include "worker/data/dataset.h"

#include <filesystem>
#include <memory>

namespace parley {

enum class MnistPart {
  train,  // train-images-idx3-ubyte and train-labels-idx1-ubyte
  test,   // t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte
};

// Pixels p become (p / 255 - mean) / deviation: the mean and deviation of the full training set, as is usual for MNIST.
inline constexpr float kMnistMean = 0.1307F;
inline constexpr float kMnistDeviation = 0.3081F;

// Loads one part. UsageError, naming the file: whatever idx.h refuses, another image size than 28 x 28, another number
// of labels than of images, or a label above 9.
std::unique_ptr<Dataset> load_mnist(const std::filesystem::path& directory, MnistPart part);

}  // namespace parley

// A data set that lies in memory, as the trainer sees it: numbered samples, copied into the batch buffers that the
// caller owns (the torch side wraps them as tensors). No torch here, so that the loaders build and run without it.
//
// Thread rule: const after construction, so any number of threads may read one at a time or together.
#pragma once

#include <cstdint>
#include <span>

namespace parley {

// The shape of one input, in torch's order.
struct SampleShape {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  std::uint64_t elements() const { return std::uint64_t{channels} * height * width; }
  bool operator==(const SampleShape&) const = default;
};

class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  // Number of samples, at least 1. All workers must agree on it (the data order depends on it).
  virtual std::uint64_t size() const = 0;
  virtual SampleShape shape() const = 0;
  // Labels are in [0, classes).
  virtual std::uint32_t classes() const = 0;

  // Copies samples, in the order of `ids` (each below size(), repeats allowed; may be empty): `inputs` takes ids.size()
  // x shape().elements() normalised float32 values, `labels` ids.size() class numbers. Both sizes must match.
  virtual void gather(std::span<const std::uint64_t> ids, std::span<float> inputs,
                      std::span<std::int64_t> labels) const = 0;
};

}  // namespace parley

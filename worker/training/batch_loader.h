// Copies the samples of a batch into tensors on the device. Memory is kept between batches.
//
// Belongs to one thread. The tensors of one load() are overwritten by the next, so the work on them must be done by
// then.
#pragma once

#include "worker/data/dataset.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace parley {

class BatchLoader {
 public:
  struct Tensors {
    at::Tensor inputs;  // float32 [n, channels, height, width]
    at::Tensor labels;  // int64 [n]
  };

  // `data` must outlive the loader.
  BatchLoader(const Dataset& data, at::Device device);

  // ids may be empty.
  Tensors load(std::span<const std::uint64_t> ids);

 private:
  const Dataset& data_;
  const at::Device device_;
  at::Tensor inputs_;  // on the host (pinned for a device), as large as the largest batch so far
  at::Tensor labels_;
};

}  // namespace parley

// Blocks of samples on demand (data.split = dynamic), asked from the coordinator.
#pragma once

#include "common/transport/control_loop.h"
#include "worker/data/batch_source.h"

#include <optional>

namespace parley {

class CoordinatorBlocks final : public BlockSource {
 public:
  // `control` must outlive this object.
  explicit CoordinatorBlocks(ControlLoop& control) : control_(control) {}

  void ask() override { control_.ask_block(taken_); }
  std::optional<Block> take() override {
    taken_ = control_.take_block();
    if (!taken_) return std::nullopt;
    return Block{taken_->epoch, taken_->begin, taken_->end};
  }

 private:
  ControlLoop& control_;
  std::optional<BlockRange> taken_;
};

}  // namespace parley

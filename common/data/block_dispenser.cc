#include "common/data/block_dispenser.h"

#include "common/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace parley {
namespace {

// Why a state cannot belong to a run with these options; empty if it can.
std::string fault_in(const BlockDispenserOptions& options, const BlockDispenserState& state) {
  const bool at_end = state.epoch == options.epochs && state.position == 0;
  if (!at_end && (state.epoch >= options.epochs || state.position >= options.samples)) {
    return fmt::format("data position is epoch {} sample {}, the run has {} epochs of {} samples", state.epoch,
                       state.position, options.epochs, options.samples);
  }
  std::vector<Block> blocks(state.returned.begin(), state.returned.end());
  for (const auto& [rank, block] : state.held) blocks.push_back(block);
  std::sort(blocks.begin(), blocks.end());
  const Block* previous = nullptr;
  for (const Block& block : blocks) {
    const bool handed_out = block.epoch < state.epoch || (block.epoch == state.epoch && block.end <= state.position);
    if (block.begin >= block.end || block.end > options.samples || !handed_out) {
      return fmt::format("data block [{}, {}) of epoch {} was never handed out", block.begin, block.end, block.epoch);
    }
    if (previous && previous->epoch == block.epoch && previous->end > block.begin) {
      return fmt::format("data blocks [{}, {}) and [{}, {}) of epoch {} overlap", previous->begin, previous->end,
                         block.begin, block.end, block.epoch);
    }
    previous = &block;
  }
  return {};
}

}  // namespace

BlockDispenser::BlockDispenser(const BlockDispenserOptions& options) : options_(options) {
  PARLEY_CHECK(options.samples > 0, "a training set needs at least one sample");
  PARLEY_CHECK(options.block_samples > 0, "a block needs at least one sample");
}

Result<BlockDispenser> BlockDispenser::restore(const BlockDispenserOptions& options, BlockDispenserState state) {
  if (std::string fault = fault_in(options, state); !fault.empty()) return failure(std::move(fault));
  BlockDispenser dispenser(options);
  dispenser.state_ = std::move(state);
  return dispenser;
}

std::optional<Block> BlockDispenser::next(Rank rank, const std::optional<Block>& finished) {
  if (const auto held = state_.held.find(rank); held != state_.held.end()) {
    if (finished != held->second) return held->second;
    state_.held.erase(held);
  }
  Block block;
  if (!state_.returned.empty()) {
    block = *state_.returned.begin();
    state_.returned.erase(state_.returned.begin());
  } else if (state_.epoch < options_.epochs) {
    const std::uint64_t left = options_.samples - state_.position;
    block = {.epoch = state_.epoch,
             .begin = state_.position,
             .end = state_.position + std::min(options_.block_samples, left)};
    state_.position = block.end;
    if (state_.position == options_.samples) {
      ++state_.epoch;
      state_.position = 0;
    }
  } else {
    return std::nullopt;
  }
  state_.held.emplace(rank, block);
  return block;
}

void BlockDispenser::release(Rank rank) {
  if (const auto node = state_.held.extract(rank); node) state_.returned.insert(node.mapped());
}

bool BlockDispenser::has_unfinished() const {
  return state_.epoch < options_.epochs || !state_.held.empty() || !state_.returned.empty();
}

}  // namespace parley

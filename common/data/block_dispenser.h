// Hands out the training set in blocks, on demand (`data.split = dynamic`; ssp and asp): a fast worker takes more
// blocks than a slow one. A block is a range of the epoch's permutation (epoch_order.h), which the worker computes
// itself, so only three numbers travel. A plain state machine without I/O; the coordinator owns the only one.
//
// Invariants:
//  1. Every position of every epoch is handed out exactly once, unless a block comes back by release(); then what its
//     holder had already pushed of it counts twice, so a block should be about one batch.
//  2. Blocks leave in order (epoch, begin) and never cross an epoch; blocks that came back go first. A rank may get a
//     block of the next epoch while another still works on the current one.
//  3. A rank holds at most one block. Asking is idempotent: a repeated request gets the same answer.
//  4. "No block" means that nothing is left to hand out now, and the rank finishes; it does not wait for the blocks of
//     the others, since a rank that waits holds up the clock table in ssp. A block that comes back later goes to
//     whoever asks next, its restarted holder for one; has_unfinished() tells the owner that some are left.
#pragma once

#include "common/base/error.h"
#include "common/base/types.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace parley {

// Positions [begin, end) of the permutation of `epoch`; never empty.
struct Block {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  auto operator<=>(const Block&) const = default;
};

struct BlockDispenserOptions {
  std::uint64_t samples = 0;        // size of the training set, at least 1
  std::uint64_t block_samples = 0;  // samples a block, at least 1; the last block of an epoch may be smaller
  std::uint64_t epochs = 0;         // 0: there is no data at all
};

// All that a dispenser remembers; what a checkpoint has to keep.
struct BlockDispenserState {
  std::uint64_t epoch = 0;     // the next new block begins at this epoch …
  std::uint64_t position = 0;  // … and at this position of it
  std::map<Rank, Block> held;  // by rank, handed out and not reported as finished
  std::set<Block> returned;    // came back, to be handed out again

  bool operator==(const BlockDispenserState&) const = default;
};

class BlockDispenser {
 public:
  explicit BlockDispenser(const BlockDispenserOptions& options);
  // Continues from a state that was read from outside; refuses one that does not fit the options.
  static Result<BlockDispenser> restore(const BlockDispenserOptions& options, BlockDispenserState state);

  // The next block for a rank, or none when nothing is left to hand out. `finished` is the block that the rank has just
  // completed; none in the first request of a life. A rank that holds another block than `finished` is given that one
  // again: its request is a repeat, or its former life died holding it.
  std::optional<Block> next(Rank rank, const std::optional<Block>& finished);

  // Takes back what a rank holds, if anything: it died and nobody replaces it, or its successor starts afresh.
  void release(Rank rank);

  // Whether any block is yet to be handed out, held or returned.
  bool has_unfinished() const;

  const BlockDispenserState& state() const { return state_; }

 private:
  BlockDispenserOptions options_;
  BlockDispenserState state_;
};

}  // namespace parley

// Notices during backward which slices of the gradient arena are complete, and tells the strategy at once, so that
// communication overlaps with the rest of backward.
//
// A hook behind each parameter's gradient accumulator counts down the slices that the tensor lies in; the last one
// makes a slice ready. Within a step: begin_step(), one backward pass, finish_backward().
//
// Invariants
//  1. Strategy::slice_ready is called once a slice a step. `present` says for which parts backward produced a gradient;
//     the others' values are zero.
//  2. A parameter whose gradient comes twice in a step, or outside a step, is a RunError that names it, thrown out of
//     backward: its slice may have left already, so the second gradient could not be added.
//
// Hooks run on the thread that autograd uses for the device (the caller's on the CPU); everything else belongs to the
// trainer's thread. The tracker must outlive every graph through the model's parameters.
#pragma once

#include "common/base/types.h"
#include "worker/sync/strategy.h"
#include "worker/training/module_binding.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace parley {

class GradientTracker {
 public:
  // Both must outlive the tracker.
  GradientTracker(ModuleBinding& binding, Strategy& strategy);
  ~GradientTracker();
  GradientTracker(const GradientTracker&) = delete;
  GradientTracker& operator=(const GradientTracker&) = delete;

  // Arms the hooks. After Strategy::begin_step: zeroes the gradient arena.
  void begin_step();
  // After backward (or without one, where there was no sample): marks every remaining slice ready. Parts without a
  // gradient are not present; buffers are where `trained` says that a forward pass saw samples.
  void finish_backward(bool trained);

 private:
  // A tensor's part of a slice.
  struct Place {
    SliceId slice;
    std::size_t part = 0;  // index into present_, over all slices
  };
  // A parameter, its hook, and what the hook counts down.
  struct Watch {
    const ModuleBinding::Bound* bound = nullptr;
    std::shared_ptr<torch::autograd::Node> accumulator;  // only a graph would keep it alive
    std::uintptr_t hook = 0;
    std::vector<Place> places;
    bool seen = false;  // in this step
  };

  void find_places();
  void add_hooks();
  void on_gradient(Watch& watch, bool defined);
  void complete(SliceId slice);
  void deliver_downloaded(bool wait);
  std::span<const std::uint8_t> present(SliceId slice) const;

  ModuleBinding& binding_;
  Strategy& strategy_;
  std::vector<Watch> watches_;                         // a bound parameter
  std::vector<std::size_t> first_part_;                // of a slice in present_; one more at the end
  std::vector<std::uint8_t> present_;                  // a part
  std::vector<std::atomic<std::uint32_t>> remaining_;  // tensors still to come, a slice
  std::deque<SliceId> downloading_;                    // in the order in which the downloads were started
  bool armed_ = false;
};

}  // namespace parley

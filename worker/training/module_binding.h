// Makes a model's tensors views of the arenas (common/layout/arena.h), so that pushing, pulling and applying never
// gather or scatter them.
//
// On the CPU nothing is copied. All parameters share one torch storage; select(c) points it at half(c) of the parameter
// arena, which moves every view at once. Gradients are views of the gradient arena, into which backward accumulates. On
// another device the same holds for a mirror of the arenas there: select() uploads the half, and a slice's gradients
// are downloaded when they are complete.
//
// Invariants
//  1. No graph may be alive when select() is called: tensors saved for backward are views too, and would follow.
//  2. Weights are read from half(c) only; the module never writes them. Buffers (running statistics), which forward
//     does write, live in memory of their own: select(c) loads them from half(c), publish_buffers() puts what forward
//     made of them into the gradient arena, where a slice of buffers carries its new value.
//  3. Empty tensors keep their own storage and get no gradient: they have nothing to train.
//
// Owned by the trainer's thread; start_download() and download_done() may be called from autograd's thread of the
// device, one call at a time.
#pragma once

#include "common/layout/arena.h"
#include "common/layout/layout.h"
#include "worker/training/model_tensors.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley {

class ModuleBinding {
 public:
  // A parameter that has a place in the arena.
  struct Bound {
    at::Tensor parameter;
    std::uint32_t tensor = 0;  // index into Layout::tensors()
  };

  // `tensors`: what collect_tensors(model) gave and `layout` was computed from. Moves the whole model to `device`,
  // copies its present values into half(0), and selects clock 0. The layout and the arenas' memory must outlive the
  // binding; the model must not be used after the binding is gone.
  ModuleBinding(const Model& model, const std::vector<ModelTensor>& tensors, const Layout& layout,
                const ParameterArena& parameters, const GradientArena& gradients, at::Device device);

  // From now on the module computes with the weights of half(clock) (an upload, on a device).
  void select(Clock clock);
  // Zeroes the gradients, once a step before backward.
  void clear_gradients();
  // Copies the buffers' values into their slices of the gradient arena.
  void publish_buffers();

  // Gradients of a slice on their way from the device; on the CPU they are in the arena already, so that a download is
  // done at once. start_download() follows the work that autograd has queued so far.
  void start_download(SliceId slice);
  bool download_done(SliceId slice) const;
  void finish_download(SliceId slice);

  const Layout& layout() const { return layout_; }
  at::Device device() const { return device_; }
  std::span<const Bound> bound() const { return bound_; }
  // Whether the gradient of a bound parameter still lies in the arena (user code may have replaced it).
  bool gradient_in_place(const Bound& bound) const;

 private:
  void bind(const ModelTensor& item);
  std::span<float> buffer_range(std::span<float> arena) const { return arena.subspan(buffers_begin_); }

  const Layout& layout_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  const at::Device device_;
  std::uint64_t buffers_begin_ = 0;  // buffers come last in the arena

  c10::Storage weights_;                              // what all parameters view; its pointer moves
  at::Tensor buffers_;                                // on the device, the arena's tail
  at::Tensor host_gradients_;                         // the gradient arena
  at::Tensor device_gradients_;                       // on the CPU: the gradient arena itself
  at::Tensor device_halves_[2];                       // undefined on the CPU
  std::vector<std::optional<c10::Event>> downloads_;  // a slice
  std::vector<Bound> bound_;
};

}  // namespace parley

// The dense optimizers: what torch.optim's SGD, Adam, AdamW, Adagrad and RMSprop do to one tensor in one step, equal to
// them within float rounding. Servers run it on slices, workers run it in all-reduce and single mode; the same
// functions, so the same bits (element.h states the order of operations).
//
// Free functions over the caller's arrays; the caller owns weights, slots and step counts. Nothing is allocated or
// locked. Thread rule: any thread, as long as no two calls share an output array. Invariants:
//   1. apply() reads version t of the weights and writes version t+1: `weights_out` is another buffer (ping-pong) or
//      the same one. Slots (optimizer state) are updated in place, so a non-finite gradient must be found before
//      (mean.h).
//   2. An element's result depends on that element's inputs and on the step's scalars alone: how a tensor is cut into
//      slices or calls does not change a bit.
//   3. Step counts are per tensor: a tensor without a gradient in a step keeps weights, slots and step count. The
//      caller copies its weights into the next version with copy_weights() and calls nothing else, as torch skips it.
//   4. Slots start at zero. The first momentum step then sets the buffer to the gradient, as in torch.
#pragma once

#include "common/optimizer/element.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace parley {

enum class OptimizerKind : std::uint8_t { sgd, adam, adamw, adagrad, rmsprop };

// The settings that all tensors share. Only the fields that `kind` names are read.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0;    // sgd, rmsprop: decay of the momentum buffer; 0: there is no such buffer
  bool nesterov = false;  // sgd with momentum
  double beta1 = 0.9;     // adam, adamw: decay of the mean of gradients
  double beta2 = 0.999;   // adam, adamw: decay of the mean of squared gradients
  double alpha = 0.99;    // rmsprop: decay of the mean of squared gradients
  double epsilon = 1e-8;  // all but sgd: added to the root; see default_epsilon()
};

// What torch takes for epsilon where nothing is said: 1e-10 for Adagrad, else 1e-8.
double default_epsilon(OptimizerKind kind);

// The settings of one parameter group.
struct GroupOptions {
  double weight_decay = 0;  // coupled (added to the gradient); adamw: decoupled
  double rate_scale = 1;    // factor on the learning rate
};

inline constexpr std::size_t kMaxSlots = 2;

// The optimizer's float32 slots per parameter: 0, 1 or 2.
std::size_t slot_count(const OptimizerOptions& options);

// The name of a slot as in torch's state_dict: "momentum_buffer", "exp_avg", "exp_avg_sq", "sum", "square_avg". `slot`
// < slot_count(options).
std::string_view slot_name(const OptimizerOptions& options, std::size_t slot);

// The element rule that these options select.
UpdateRule update_rule(const OptimizerOptions& options);

// The scalars of one step of one tensor, computed in double and rounded once. `step_count` counts that tensor's steps,
// this one included (the first is 1). In ssp and asp a single worker's push is applied with learning_rate / W.
StepScalars step_scalars(const OptimizerOptions& options, const GroupOptions& group, double learning_rate,
                         std::uint64_t step_count);

// Spans of the slots, in slot_name() order; those past slot_count() are empty.
using SlotSpans = std::array<std::span<float>, kMaxSlots>;

// One optimizer step: weights_out = step(weights_in, gradient, slots), slots in place. All spans that are used have the
// same length. weights_out may be weights_in; no other overlap.
void apply(const OptimizerOptions& options, const StepScalars& scalars, std::span<const float> gradient,
           std::span<const float> weights_in, std::span<float> weights_out, const SlotSpans& slots);

// The step of a tensor that is skipped: version t+1 is version t. The same buffer on both sides is allowed.
void copy_weights(std::span<const float> weights_in, std::span<float> weights_out);

}  // namespace parley

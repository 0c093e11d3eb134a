#include "common/optimizer/optimizer.h"

#include "common/base/log.h"
#include "common/optimizer/kernels.h"

#include <cmath>
#include <cstring>

namespace parley {
namespace {

// base^exponent by squaring: multiplications only, so every C library gives the same value (std::pow's last bit is its
// own affair). Beta^t of Adam's bias corrections.
double integer_power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

float rounded(double value) { return static_cast<float>(value); }

}  // namespace

double default_epsilon(OptimizerKind kind) { return kind == OptimizerKind::adagrad ? 1e-10 : 1e-8; }

std::size_t slot_count(const OptimizerOptions& options) {
  switch (update_rule(options)) {
    case UpdateRule::sgd:
      return SgdRule::kSlots;
    case UpdateRule::sgd_momentum:
      return SgdMomentumRule::kSlots;
    case UpdateRule::sgd_nesterov:
      return SgdNesterovRule::kSlots;
    case UpdateRule::adam:
      return AdamRule::kSlots;
    case UpdateRule::adagrad:
      return AdagradRule::kSlots;
    case UpdateRule::rmsprop:
      return RmspropRule::kSlots;
    case UpdateRule::rmsprop_momentum:
      return RmspropMomentumRule::kSlots;
  }
  return 0;
}

std::string_view slot_name(const OptimizerOptions& options, std::size_t slot) {
  PARLEY_CHECK(slot < slot_count(options), "slot {} of {}", slot, slot_count(options));
  switch (options.kind) {
    case OptimizerKind::sgd:
      return "momentum_buffer";
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return slot == 0 ? "exp_avg" : "exp_avg_sq";
    case OptimizerKind::adagrad:
      return "sum";
    case OptimizerKind::rmsprop:
      return slot == 0 ? "square_avg" : "momentum_buffer";
  }
  return "";
}

UpdateRule update_rule(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      if (options.momentum == 0) return UpdateRule::sgd;
      return options.nesterov ? UpdateRule::sgd_nesterov : UpdateRule::sgd_momentum;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return UpdateRule::adam;
    case OptimizerKind::adagrad:
      return UpdateRule::adagrad;
    case OptimizerKind::rmsprop:
      return options.momentum == 0 ? UpdateRule::rmsprop : UpdateRule::rmsprop_momentum;
  }
  return UpdateRule::sgd;
}

StepScalars step_scalars(const OptimizerOptions& options, const GroupOptions& group, double learning_rate,
                         std::uint64_t step_count) {
  PARLEY_CHECK(step_count > 0, "a tensor's first step has count 1");
  const double rate = learning_rate * group.rate_scale;
  StepScalars s;
  s.rate = rounded(rate);
  if (options.kind == OptimizerKind::adamw) {
    s.decoupled_keep = rounded(1 - rate * group.weight_decay);
  } else {
    s.coupled_decay = rounded(group.weight_decay);
  }
  switch (options.kind) {
    case OptimizerKind::sgd:
      s.momentum = rounded(options.momentum);
      break;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      s.rate = rounded(rate / (1 - integer_power(options.beta1, step_count)));
      s.first_keep = rounded(options.beta1);
      s.first_gain = rounded(1 - options.beta1);
      s.second_keep = rounded(options.beta2);
      s.second_gain = rounded(1 - options.beta2);
      s.root_correction = rounded(1 / std::sqrt(1 - integer_power(options.beta2, step_count)));
      s.epsilon = rounded(options.epsilon);
      break;
    case OptimizerKind::adagrad:
      s.epsilon = rounded(options.epsilon);
      break;
    case OptimizerKind::rmsprop:
      s.momentum = rounded(options.momentum);
      s.second_keep = rounded(options.alpha);
      s.second_gain = rounded(1 - options.alpha);
      s.epsilon = rounded(options.epsilon);
      break;
  }
  return s;
}

void apply(const OptimizerOptions& options, const StepScalars& scalars, std::span<const float> gradient,
           std::span<const float> weights_in, std::span<float> weights_out, const SlotSpans& slots) {
  const std::size_t count = gradient.size();
  PARLEY_CHECK(weights_in.size() == count && weights_out.size() == count,
               "a gradient of {} elements for weights of {} and {}", count, weights_in.size(), weights_out.size());
  for (std::size_t slot = 0; slot < slot_count(options); ++slot) {
    PARLEY_CHECK(slots[slot].size() == count, "slot {} has {} elements, the gradient has {}", slot_name(options, slot),
                 slots[slot].size(), count);
  }
  const auto rule = static_cast<std::size_t>(update_rule(options));
  kernels().step[rule](scalars, StepArrays{.gradient = gradient.data(),
                                           .weights_in = weights_in.data(),
                                           .weights_out = weights_out.data(),
                                           .slot0 = slots[0].data(),
                                           .slot1 = slots[1].data(),
                                           .count = count});
}

void copy_weights(std::span<const float> weights_in, std::span<float> weights_out) {
  PARLEY_CHECK(weights_in.size() == weights_out.size(), "{} weights into {}", weights_in.size(), weights_out.size());
  if (weights_in.data() == weights_out.data() || weights_in.empty()) return;
  std::memcpy(weights_out.data(), weights_in.data(), weights_in.size_bytes());
}

}  // namespace parley

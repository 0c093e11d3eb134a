// The optimizers' arithmetic for one weight, shared by the host kernels (kernels.inc) and the CUDA kernels
// (worker/cuda/optimizer_kernels.cu), so that a server, a worker's CPU and a worker's GPU cannot differ by a formula.
//
// Exact order of operations. All values are float32; each operator below is one IEEE-754 operation, rounded to nearest,
// in the order written. Hosts compile with -ffp-contract=off and devices with -fmad=false -prec-div=true
// -prec-sqrt=true: a fused multiply-add rounds once where these formulas round twice and would change bits. Division
// and square root are the correctly rounded ones, never an approximation. What does not depend on the element (rates,
// bias corrections) is computed once in double and rounded once to float32 (step_scalars in optimizer.h). Denormals are
// kept: no thread that runs these kernels may set flush-to-zero.
//
// Thread rule: pure functions. Everything is forced inline: the kernels are compiled once per vector level, and an
// out-of-line copy made with AVX-512 instructions could otherwise be the one that the linker keeps for every level.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define PARLEY_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define PARLEY_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace parley {

// What one optimizer step of one tensor needs besides its elements. Made by step_scalars (optimizer.h); fields that a
// rule does not use are zero.
struct StepScalars {
  float rate = 0;             // learning rate; Adam: learning rate / (1 - beta1^t)
  float coupled_decay = 0;    // weight decay added to the gradient
  float decoupled_keep = 1;   // AdamW: 1 - learning rate * weight decay; otherwise 1
  float momentum = 0;         // decay of the momentum buffer
  float first_keep = 0;       // Adam: beta1
  float first_gain = 0;       // Adam: 1 - beta1
  float second_keep = 0;      // Adam: beta2; RMSprop: alpha
  float second_gain = 0;      // Adam: 1 - beta2; RMSprop: 1 - alpha
  float root_correction = 0;  // Adam: 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

// The arrays of one call, `count` elements each. weights_in == weights_out is allowed, any other overlap is not; slots
// that the rule has not are null.
struct StepArrays {
  const float* gradient;
  const float* weights_in;
  float* weights_out;
  float* slot0;
  float* slot1;
  std::size_t count;
};

// Index into the kernels' tables, in the order of the rules below.
enum class UpdateRule : std::uint8_t {
  sgd,
  sgd_momentum,
  sgd_nesterov,
  adam,
  adagrad,
  rmsprop,
  rmsprop_momentum,
};
inline constexpr std::size_t kUpdateRules = 7;

PARLEY_HOST_DEVICE float correctly_rounded_sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// True for infinities and NaN. On the bits, so that no compiler flag can reason it away.
PARLEY_HOST_DEVICE bool non_finite_bits(std::uint32_t bits) { return (bits & 0x7f800000U) == 0x7f800000U; }

// The last two operations of the mean (mean.h): the sum loses the sign of a zero, then is scaled.
PARLEY_HOST_DEVICE float finish_mean_element(float sum, float after) { return (sum + 0.0F) * after; }

// Each rule: kSlots, and step(), which returns the new weight and updates its slots in place.

struct SgdRule {
  static constexpr int kSlots = 0;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& /*slot0*/,
                                       float& /*slot1*/) {
    const float g = gradient + s.coupled_decay * weight;
    return weight - s.rate * g;
  }
};

struct SgdMomentumRule {
  static constexpr int kSlots = 1;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& buffer,
                                       float& /*slot1*/) {
    const float g = gradient + s.coupled_decay * weight;
    buffer = s.momentum * buffer + g;
    return weight - s.rate * buffer;
  }
};

struct SgdNesterovRule {
  static constexpr int kSlots = 1;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& buffer,
                                       float& /*slot1*/) {
    const float g = gradient + s.coupled_decay * weight;
    buffer = s.momentum * buffer + g;
    return weight - s.rate * (g + s.momentum * buffer);
  }
};

// Adam and AdamW: the one has decoupled_keep 1, the other coupled_decay 0.
struct AdamRule {
  static constexpr int kSlots = 2;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& first,
                                       float& second) {
    const float g = gradient + s.coupled_decay * weight;
    first = s.first_keep * first + s.first_gain * g;
    second = s.second_keep * second + s.second_gain * (g * g);
    const float divisor = correctly_rounded_sqrt(second) * s.root_correction + s.epsilon;
    return s.decoupled_keep * weight - s.rate * (first / divisor);
  }
};

struct AdagradRule {
  static constexpr int kSlots = 1;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& sum,
                                       float& /*slot1*/) {
    const float g = gradient + s.coupled_decay * weight;
    sum = sum + g * g;
    return weight - s.rate * (g / (correctly_rounded_sqrt(sum) + s.epsilon));
  }
};

struct RmspropRule {
  static constexpr int kSlots = 1;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& square,
                                       float& /*slot1*/) {
    const float g = gradient + s.coupled_decay * weight;
    square = s.second_keep * square + s.second_gain * (g * g);
    return weight - s.rate * (g / (correctly_rounded_sqrt(square) + s.epsilon));
  }
};

struct RmspropMomentumRule {
  static constexpr int kSlots = 2;
  static PARLEY_HOST_DEVICE float step(const StepScalars& s, float gradient, float weight, float& square,
                                       float& buffer) {
    const float g = gradient + s.coupled_decay * weight;
    square = s.second_keep * square + s.second_gain * (g * g);
    buffer = s.momentum * buffer + g / (correctly_rounded_sqrt(square) + s.epsilon);
    return weight - s.rate * buffer;
  }
};

}  // namespace parley

#include "common/base/error.h"
#include "worker/cuda/optimizer_kernels.h"

#include <algorithm>
#include <string>

namespace parley::cuda {
namespace {

constexpr unsigned kThreads = 256;
// Enough blocks to fill any GPU several times over; longer arrays are walked in strides of the whole grid.
constexpr std::size_t kMaxBlocks = 4096;

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>(std::min(kMaxBlocks, (count + kThreads - 1) / kThreads));
}

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw RunError(std::string("CUDA refused to start the kernel ") + kernel + ": " + cudaGetErrorString(error));
}

__device__ std::size_t first_index() { return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ std::size_t grid_stride() { return static_cast<std::size_t>(gridDim.x) * blockDim.x; }

template <class Rule>
__global__ void step_kernel(StepScalars scalars, StepArrays arrays) {
  for (std::size_t i = first_index(); i < arrays.count; i += grid_stride()) {
    float slot0 = 0;
    float slot1 = 0;
    if constexpr (Rule::kSlots > 0) slot0 = arrays.slot0[i];
    if constexpr (Rule::kSlots > 1) slot1 = arrays.slot1[i];
    arrays.weights_out[i] = Rule::step(scalars, arrays.gradient[i], arrays.weights_in[i], slot0, slot1);
    if constexpr (Rule::kSlots > 0) arrays.slot0[i] = slot0;
    if constexpr (Rule::kSlots > 1) arrays.slot1[i] = slot1;
  }
}

__global__ void scale_kernel(const float* in, float factor, float* out, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += grid_stride()) out[i] = in[i] * factor;
}

// All threads that write the flag write the same value, so no atomic is needed.
__global__ void finish_mean_kernel(const float* sum, float after, float* out, int* non_finite, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += grid_stride()) {
    const float mean = finish_mean_element(sum[i], after);
    if (non_finite_bits(__float_as_uint(mean))) *non_finite = 1;
    out[i] = mean;
  }
}

__global__ void check_finite_kernel(const float* values, int* non_finite, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += grid_stride()) {
    if (non_finite_bits(__float_as_uint(values[i]))) *non_finite = 1;
  }
}

template <class Rule>
void launch_step(const StepScalars& scalars, const StepArrays& arrays, cudaStream_t stream) {
  step_kernel<Rule><<<blocks_for(arrays.count), kThreads, 0, stream>>>(scalars, arrays);
}

}  // namespace

void apply(UpdateRule rule, const StepScalars& scalars, const StepArrays& arrays, cudaStream_t stream) {
  if (arrays.count == 0) return;
  switch (rule) {
    case UpdateRule::sgd:
      launch_step<SgdRule>(scalars, arrays, stream);
      break;
    case UpdateRule::sgd_momentum:
      launch_step<SgdMomentumRule>(scalars, arrays, stream);
      break;
    case UpdateRule::sgd_nesterov:
      launch_step<SgdNesterovRule>(scalars, arrays, stream);
      break;
    case UpdateRule::adam:
      launch_step<AdamRule>(scalars, arrays, stream);
      break;
    case UpdateRule::adagrad:
      launch_step<AdagradRule>(scalars, arrays, stream);
      break;
    case UpdateRule::rmsprop:
      launch_step<RmspropRule>(scalars, arrays, stream);
      break;
    case UpdateRule::rmsprop_momentum:
      launch_step<RmspropMomentumRule>(scalars, arrays, stream);
      break;
  }
  check_launch("apply");
}

void scale(const float* in, float factor, float* out, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  scale_kernel<<<blocks_for(count), kThreads, 0, stream>>>(in, factor, out, count);
  check_launch("scale");
}

void finish_mean(const float* sum, float after, float* out, int* non_finite, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  finish_mean_kernel<<<blocks_for(count), kThreads, 0, stream>>>(sum, after, out, non_finite, count);
  check_launch("finish_mean");
}

void check_finite(const float* values, int* non_finite, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  check_finite_kernel<<<blocks_for(count), kThreads, 0, stream>>>(values, non_finite, count);
  check_launch("check_finite");
}

}  // namespace parley::cuda

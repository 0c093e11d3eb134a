// The optimizer step and the mean on a GPU, for all-reduce and single mode on CUDA: the arithmetic of
// common/optimizer/element.h over device arrays, so a GPU gives the bits that the host kernels give for the same
// inputs. That needs -fmad=false -prec-div=true -prec-sqrt=true for the .cu file; a test compares the bits where there
// is a GPU.
//
// All pointers are device pointers of the device that is current, float32 arrays of `count` elements. Functions only
// enqueue work on `stream` and return; the caller orders and synchronises. They throw RunError, naming the kernel and
// CUDA's reason, if a launch is refused. No LibTorch here: the trainer hands over raw pointers and its stream. Thread
// rule: as CUDA's: any thread whose current device is that of the arrays and the stream.
#pragma once

#include "common/optimizer/element.h"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace parley::cuda {

// One optimizer step. `arrays` as in element.h, weights_in == weights_out allowed; slots that the rule has not are
// null.
void apply(UpdateRule rule, const StepScalars& scalars, const StepArrays& arrays, cudaStream_t stream);

// out = in * factor. out may be in.
void scale(const float* in, float factor, float* out, std::size_t count, cudaStream_t stream);

// out = (sum + 0.0f) * after, as finish_mean in common/optimizer/mean.h. out may be sum. Sets *non_finite (one int in
// device memory, which the caller has zeroed) to 1 if a value of `out` is infinite or NaN, else leaves it.
void finish_mean(const float* sum, float after, float* out, int* non_finite, std::size_t count, cudaStream_t stream);

// Sets *non_finite to 1 as finish_mean does.
void check_finite(const float* values, int* non_finite, std::size_t count, cudaStream_t stream);

}  // namespace parley::cuda

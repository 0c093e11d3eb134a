// The kernels for any CPU of the architecture that the build targets.
#define PARLEY_KERNEL_TABLE kGenericKernels
#define PARLEY_KERNEL_LEVEL VectorLevel::generic
#include "common/optimizer/kernels.inc"

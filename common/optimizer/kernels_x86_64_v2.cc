// The kernels for CPUs with SSE4.2; optimizer.cmake compiles this file with -march=x86-64-v2.
#define PARLEY_KERNEL_TABLE kX86V2Kernels
#define PARLEY_KERNEL_LEVEL VectorLevel::x86_64_v2
#include "common/optimizer/kernels.inc"

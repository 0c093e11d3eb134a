// The kernels for CPUs with AVX2; optimizer.cmake compiles this file with -march=x86-64-v3.
#define PARLEY_KERNEL_TABLE kX86V3Kernels
#define PARLEY_KERNEL_LEVEL VectorLevel::x86_64_v3
#include "common/optimizer/kernels.inc"

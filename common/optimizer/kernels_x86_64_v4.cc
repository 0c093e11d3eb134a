// The kernels for CPUs with AVX-512; optimizer.cmake compiles this file with -march=x86-64-v4.
#define PARLEY_KERNEL_TABLE kX86V4Kernels
#define PARLEY_KERNEL_LEVEL VectorLevel::x86_64_v4
#include "common/optimizer/kernels.inc"

#include "common/optimizer/kernels.h"

#include "common/base/log.h"

#include <atomic>

namespace parley {

extern const KernelTable kGenericKernels;
#if defined(__x86_64__)
extern const KernelTable kX86V2Kernels;
extern const KernelTable kX86V3Kernels;
extern const KernelTable kX86V4Kernels;
#endif

namespace {

bool cpu_has(VectorLevel level) {
  if (level == VectorLevel::generic) return true;
#if defined(__x86_64__)
  // One telling feature or two stand for each level: what else belongs to it came with them in every CPU.
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("popcnt") != 0;
  const bool v3 = v2 && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                  __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                  __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                  __builtin_cpu_supports("avx512vl") != 0;
  switch (level) {
    case VectorLevel::generic:
      return true;
    case VectorLevel::x86_64_v2:
      return v2;
    case VectorLevel::x86_64_v3:
      return v3;
    case VectorLevel::x86_64_v4:
      return v4;
  }
#endif
  return false;
}

const KernelTable& best_kernels() {
  for (const VectorLevel level : {VectorLevel::x86_64_v4, VectorLevel::x86_64_v3, VectorLevel::x86_64_v2}) {
    if (const KernelTable* table = kernels_of(level)) return *table;
  }
  return kGenericKernels;
}

// A static of the function, so that it is there for whatever runs before main.
std::atomic<const KernelTable*>& active_kernels() {
  static std::atomic<const KernelTable*> active{&best_kernels()};
  return active;
}

}  // namespace

const KernelTable& kernels() { return *active_kernels().load(std::memory_order_acquire); }

const KernelTable* kernels_of(VectorLevel level) {
  if (!cpu_has(level)) return nullptr;
  switch (level) {
    case VectorLevel::generic:
      return &kGenericKernels;
#if defined(__x86_64__)
    case VectorLevel::x86_64_v2:
      return &kX86V2Kernels;
    case VectorLevel::x86_64_v3:
      return &kX86V3Kernels;
    case VectorLevel::x86_64_v4:
      return &kX86V4Kernels;
#else
    default:
      break;
#endif
  }
  return nullptr;
}

void force_level(VectorLevel level) {
  const KernelTable* table = kernels_of(level);
  PARLEY_CHECK(table != nullptr, "this CPU has no {}", name(level));
  active_kernels().store(table, std::memory_order_release);
}

std::string_view name(VectorLevel level) {
  switch (level) {
    case VectorLevel::generic:
      return "generic";
    case VectorLevel::x86_64_v2:
      return "x86-64-v2";
    case VectorLevel::x86_64_v3:
      return "x86-64-v3";
    case VectorLevel::x86_64_v4:
      return "x86-64-v4";
  }
  return "unknown";
}

}  // namespace parley

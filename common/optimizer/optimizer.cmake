# The optimizer kernels are one source (kernels.inc) compiled once per vector level; kernels.cc chooses at run time.
# Every build type optimises them: they are the inner loops of the system, and a debug build should stay usable. No
# option below changes a value: no errno from sqrt, no floating-point traps to preserve, "omp simd" without OpenMP.
set(kernel_options -O3 -fopenmp-simd -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math)
set(kernel_exclude "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  foreach(level 2 3)
    set_source_files_properties(optimizer/kernels_x86_64_v${level}.cc
                                PROPERTIES COMPILE_OPTIONS "${kernel_options};-march=x86-64-v${level}")
  endforeach()
  set_source_files_properties(
    optimizer/kernels_x86_64_v4.cc
    PROPERTIES COMPILE_OPTIONS "${kernel_options};-march=x86-64-v4;-mprefer-vector-width=512")
else()
  set(kernel_exclude "kernels_x86_64_v[234]\\.cc$")
endif()
set_source_files_properties(optimizer/kernels_generic.cc PROPERTIES COMPILE_OPTIONS "${kernel_options}")
parley_library(parley_optimizer FOLDER optimizer EXCLUDE ${kernel_exclude} DEPENDS parley_base parley_layout)

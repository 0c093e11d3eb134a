# The CUDA language, toolkit and NCCL; included with PARLEY_WITH_CUDA.
#
# parley::nccl           nccl.h and libnccl, from the toolkit.
# CUDA::cudart           for every target with .cu files.
# parley_cuda_part(T...) declares targets that are CUDA or NCCL code: the build target `parley_cuda_parts` builds them all,
#                        and nothing else. CI compiles and links it wherever there is a toolkit, without a GPU.
#
# Keep LibTorch out of .cu files (it triples their build time): a .cu file holds kernels and plain launch functions.
find_program(
  PARLEY_NVCC nvcc
  HINTS $ENV{CUDA_HOME}/bin $ENV{CUDAToolkit_ROOT}/bin
  PATHS /usr/local/cuda/bin
  DOC "The CUDA compiler")
if(NOT PARLEY_NVCC)
  message(FATAL_ERROR "PARLEY_WITH_CUDA is on but no nvcc was found: put it on PATH or set CUDA_HOME")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${PARLEY_NVCC})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU generations to compile for")
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # The one that LibTorch and NCCL use, not a second copy inside our programs.
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 has no CUDA standard 20 and our headers need it, so the level is given as a plain option and CMake's own is
# unset. No fused multiply-add: kernels give the bits that the CPU's give.
target_compile_options(
  parley_options
  INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20
            -fmad=false
            -Xcompiler=-Wall,-Wextra,-ffp-contract=off
            $<$<BOOL:${PARLEY_WERROR}>:-Werror=all-warnings>>)
unset(CMAKE_CUDA_STANDARD)
unset(CMAKE_CUDA_STANDARD CACHE)

find_path(PARLEY_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(PARLEY_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
add_library(parley_nccl INTERFACE)
target_include_directories(parley_nccl SYSTEM INTERFACE ${PARLEY_NCCL_INCLUDE})
target_link_libraries(parley_nccl INTERFACE ${PARLEY_NCCL_LIBRARY} CUDA::cudart)
add_library(parley::nccl ALIAS parley_nccl)

add_custom_target(parley_cuda_parts)
function(parley_cuda_part)
  add_dependencies(parley_cuda_parts ${ARGN})
endfunction()

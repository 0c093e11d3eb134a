# Imports LibTorch from the `torch` wheel that scripts/setup put into the user's cache.
#
# parley::torch       libtorch_cpu and libc10, all that CPU code needs. (The wheel's own CMake package insists on CUDA.)
# parley::torch_cuda  with PARLEY_WITH_CUDA: parley::torch, the CUDA toolkit, libtorch_cuda and libc10_cuda. It links with the
#                     lean CPU environment too; to start such a program takes the full one (scripts/setup --cuda).
set(PARLEY_TORCH_VENV "" CACHE PATH "Python environment that holds the torch wheel (empty: the one of scripts/setup)")

if(PARLEY_TORCH_VENV)
  set(parley_torch_venv ${PARLEY_TORCH_VENV})
else()
  if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(parley_cache $ENV{XDG_CACHE_HOME}/parley)
  else()
    set(parley_cache $ENV{HOME}/.cache/parley)
  endif()
  set(parley_torch_venv ${parley_cache}/torch-2.11.0-cpu)
  if(PARLEY_WITH_CUDA AND EXISTS ${parley_cache}/torch-2.11.0-cuda/parley-complete)
    set(parley_torch_venv ${parley_cache}/torch-2.11.0-cuda)
  endif()
endif()
file(GLOB parley_torch_root ${parley_torch_venv}/lib/python3*/site-packages/torch)
if(NOT EXISTS "${parley_torch_root}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch not found under ${parley_torch_venv}: run scripts/setup")
endif()

add_library(parley_torch INTERFACE)
# Behind the system's own headers: the wheel carries another version of fmt, whose functions no library here has.
foreach(folder include include/torch/csrc/api/include)
  target_compile_options(parley_torch INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${parley_torch_root}/${folder}>")
endforeach()
target_link_libraries(parley_torch INTERFACE ${parley_torch_root}/lib/libtorch_cpu.so ${parley_torch_root}/lib/libc10.so)
target_link_options(parley_torch INTERFACE -Wl,-rpath,${parley_torch_root}/lib)
add_library(parley::torch ALIAS parley_torch)

if(PARLEY_WITH_CUDA)
  add_library(parley_torch_cuda INTERFACE)
  # Nothing refers to libtorch_cuda by name (it registers its kernels when it is loaded), so the linker would drop it.
  # What it asks for itself comes from the full environment when the program starts.
  target_link_libraries(
    parley_torch_cuda
    INTERFACE
      -Wl,--push-state,--no-as-needed,${parley_torch_root}/lib/libtorch_cuda.so,${parley_torch_root}/lib/libc10_cuda.so,--pop-state
      parley_torch CUDA::cudart)
  target_link_options(parley_torch_cuda INTERFACE -Wl,--allow-shlib-undefined)
  add_library(parley::torch_cuda ALIAS parley_torch_cuda)
endif()

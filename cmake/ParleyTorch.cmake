# Imports LibTorch from the `torch` wheel that scripts/setup put into the user's cache. CPU flavour: libtorch_cpu and
# libc10 only, since the wheel's own CMake package insists on CUDA.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(parley_cache $ENV{XDG_CACHE_HOME}/parley)
else()
  set(parley_cache $ENV{HOME}/.cache/parley)
endif()
set(PARLEY_TORCH_VENV ${parley_cache}/torch-2.11.0-cpu CACHE PATH "Python environment that holds the torch wheel")
file(GLOB parley_site_packages ${PARLEY_TORCH_VENV}/lib/python3*/site-packages)
if(NOT EXISTS ${parley_site_packages}/torch/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch not found under ${PARLEY_TORCH_VENV}: run scripts/setup")
endif()
set(parley_torch_root ${parley_site_packages}/torch)

add_library(parley_torch INTERFACE)
target_include_directories(parley_torch SYSTEM INTERFACE ${parley_torch_root}/include
                           ${parley_torch_root}/include/torch/csrc/api/include)
target_link_libraries(parley_torch INTERFACE ${parley_torch_root}/lib/libtorch_cpu.so ${parley_torch_root}/lib/libc10.so)
target_link_options(parley_torch INTERFACE -Wl,-rpath,${parley_torch_root}/lib)
add_library(parley::torch ALIAS parley_torch)

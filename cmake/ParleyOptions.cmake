# One interface target carries the language level, warnings and sanitizers of all our own code.
add_library(parley_options INTERFACE)
# Not CMAKE_CXX_STANDARD: CUDA sources would inherit it, and CMake 3.25 knows no CUDA 20 (ParleyCuda.cmake).
target_compile_features(parley_options INTERFACE cxx_std_20)
target_include_directories(parley_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(
  parley_options
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wno-sign-conversion
            $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
            $<$<BOOL:${PARLEY_WERROR}>:-Werror>
            # One rounding per written operation: the same bits at every vector level, on server and worker.
            -ffp-contract=off>)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Paths relative to the tree in messages and debug information: shorter to read, and one compiler cache serves all clones.
# (ccache hands the compiler paths relative to build/PRESET: the second form.)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=;-fmacro-prefix-map=../../=>")

if(PARLEY_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PARLEY_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${PARLEY_SANITIZE})
endif()

# parley_library(NAME [INTERFACE_ONLY] DEPENDS ...): one layer of the tree, sources by glob in the calling folder.
function(parley_library name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPENDS;PRIVATE_DEPENDS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}/*.cc)
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC parley_options ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE parley_options ${ARG_DEPENDS})
  endif()
  string(REPLACE "parley_" "parley::" alias ${name})
  add_library(${alias} ALIAS ${name})
endfunction()

# The commit is looked up by each build: at configure time it would grow stale.
set(parley_generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
set(parley_commit_header ${parley_generated}/common/observe/commit.h)
add_custom_target(
  parley_commit
  BYPRODUCTS ${parley_commit_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${parley_commit_header} -P
          ${CMAKE_CURRENT_LIST_DIR}/write_commit.cmake
  VERBATIM)
set_source_files_properties(
  observe/provenance.cc PROPERTIES COMPILE_DEFINITIONS PARLEY_VERSION="${PROJECT_VERSION}" INCLUDE_DIRECTORIES
                                                       ${parley_generated})
parley_library(parley_observe FOLDER observe DEPENDS parley_base PRIVATE_DEPENDS nlohmann_json::nlohmann_json)
add_dependencies(parley_observe parley_commit)

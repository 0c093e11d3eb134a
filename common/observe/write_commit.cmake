# Writes commit.h with the commit that is checked out, "+" behind it where files differ from it. Runs in each build, and
# touches the file only where it changes, so that nothing is compiled again without need.
#   cmake -DSOURCE=... -DOUTPUT=.../commit.h -P write_commit.cmake
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "+")
  endif()
endif()
set(text "#pragma once\ninline constexpr char kCommit[] = \"${commit}\";\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()

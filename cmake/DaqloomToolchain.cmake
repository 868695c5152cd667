# Language level, warnings, optimisation and sanitizers: the same for every target.

# Version of the sources, for programs that are built against the installed libraries.
find_program(DAQLOOM_PYTHON3 python3)
execute_process(COMMAND "${DAQLOOM_PYTHON3}" "${CMAKE_SOURCE_DIR}/src/daqloom/base/sources.py"
  OUTPUT_VARIABLE DAQLOOM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT DAQLOOM_VERSION)
  set(DAQLOOM_VERSION 0)
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12) OR
   (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16))
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION}; daqloom needs g++ 12 or clang 16, or newer: install one (on "
    "Debian 12: apt-get install g++) and name it with CXX=g++-12.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A unity build compiles several sources of a target as one unit, because most of the time is spent in
# headers. It is off where tools need single files, and where a developer changes one file at a time.
set(CMAKE_UNITY_BUILD ${DAQLOOM_UNITY})

# ccache: paths are relative to the sources, so that one clone can use what another has compiled. A
# precompiled header is compared by its contents, not by its date.
find_program(DAQLOOM_CCACHE ccache)
if(DAQLOOM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${DAQLOOM_CCACHE}")
endif()

# A plain `pip install .` must survive the warnings of newer compilers.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR AND NOT SKBUILD)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()

add_library(daqloom_warnings INTERFACE)
# clang's -Wconversion includes changes of sign, that of g++ does not: make them agree.
target_compile_options(daqloom_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)

if(DAQLOOM_SANITIZE STREQUAL "address")
  # Without vptr: it opens a pipe to find out whether memory can be read, and reports a false error in
  # tests that leave no file descriptor to open.
  set(sanitizers -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
elseif(DAQLOOM_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(DAQLOOM_SANITIZE)
  message(FATAL_ERROR "DAQLOOM_SANITIZE is '${DAQLOOM_SANITIZE}': give 'address' or 'thread'.")
endif()

if(sanitizers)
  # Line numbers in reports, assertions on, and fast enough to run every test on every push.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -gline-tables-only")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  endif()
  add_compile_options(${sanitizers} -fno-omit-frame-pointer)
  add_link_options(${sanitizers})
elseif(DAQLOOM_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT lto LANGUAGES CXX OUTPUT lto_error)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${lto})
endif()

# Fuzz targets need clang. The tests under ASan run them on known inputs; to look for new ones, the
# engine is compiled with libFuzzer's instrumentation.
if(DAQLOOM_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "DAQLOOM_FUZZ needs clang: add -DCMAKE_CXX_COMPILER=clang++-16.")
endif()
if(DAQLOOM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND DAQLOOM_SANITIZE STREQUAL "address")
  add_library(daqloom_fuzzer INTERFACE)
  target_link_options(daqloom_fuzzer INTERFACE -fsanitize=fuzzer)
endif()

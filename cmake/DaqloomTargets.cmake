# The engine is one static library; tests, benchmarks and fuzz targets are found by their names.
#
#   engine/<folder>/<subject>.cpp          the library
#   engine/<folder>/<subject>_test.cpp     one test executable per folder
#   engine/<folder>/<subject>_bench.cpp    one executable each
#   engine/<folder>/<subject>_fuzz.cpp     one executable each
#   engine/bindings/                       the Python module, built by its own CMakeLists.txt
#   libfabric*.cpp                         only where libfabric is installed

# Finds a package, or remembers what to install; all that is missing is then said in one sentence.
macro(daqloom_find package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND daqloom_missing ${package})
    list(APPEND daqloom_missing_debian ${debian})
  endif()
endmacro()

function(daqloom_stop_if_missing)
  if(daqloom_missing)
    list(JOIN daqloom_missing ", " names)
    list(JOIN daqloom_missing_debian " " packages)
    message(FATAL_ERROR "daqloom needs libraries that CMake did not find (${names}): install them "
      "(on Debian and Ubuntu: apt-get install ${packages}) and start again.")
  endif()
endfunction()

# libfabric's pkg-config file says no more than where it is, which CMake finds by itself.
macro(daqloom_find_libfabric)
  find_library(DAQLOOM_LIBFABRIC fabric)
  find_path(DAQLOOM_LIBFABRIC_INCLUDE rdma/fi_rma.h)
  if(NOT DAQLOOM_LIBFABRIC OR NOT DAQLOOM_LIBFABRIC_INCLUDE)
    set(DAQLOOM_LIBFABRIC "")
    message(STATUS "libfabric (Debian and Ubuntu: libfabric-dev) was not found: units will reach "
      "each other on one machine only")
  endif()
endmacro()

function(daqloom_glob result suffix)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/engine/*${suffix}.cpp")
  list(FILTER files EXCLUDE REGEX "^engine/bindings/")
  if(NOT DAQLOOM_LIBFABRIC)
    list(FILTER files EXCLUDE REGEX "/libfabric[^/]*\\.cpp$")
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

function(daqloom_add_engine)
  daqloom_glob(sources "")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
  add_library(daqloom_engine STATIC ${sources})
  target_include_directories(daqloom_engine PUBLIC "${PROJECT_SOURCE_DIR}/engine")
  target_link_libraries(daqloom_engine
    PUBLIC tl::expected fmt::fmt-header-only
    PRIVATE daqloom_warnings)
  if(DAQLOOM_LIBFABRIC)
    target_compile_definitions(daqloom_engine PUBLIC DAQLOOM_LIBFABRIC)
    target_link_libraries(daqloom_engine PUBLIC "${DAQLOOM_LIBFABRIC}")
    target_include_directories(daqloom_engine SYSTEM PUBLIC "${DAQLOOM_LIBFABRIC_INCLUDE}")
  endif()
  set_target_properties(daqloom_engine PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

function(daqloom_add_tests)
  include(GoogleTest)
  daqloom_glob(tests "_test")
  foreach(file IN LISTS tests)
    get_filename_component(folder "${file}" DIRECTORY)
    string(REGEX REPLACE "^engine/" "" folder "${folder}")
    string(REPLACE "/" "_" target "${folder}_test")
    if(NOT TARGET ${target})
      add_executable(${target})
      target_link_libraries(${target} PRIVATE daqloom_engine daqloom_warnings GTest::gtest_main)
      # Tests check behaviour, not speed: do not pay for a link-time optimisation per executable.
      set_target_properties(${target} PROPERTIES
        INTERPROCEDURAL_OPTIMIZATION OFF RUNTIME_OUTPUT_DIRECTORY tests)
      gtest_discover_tests(${target} TEST_PREFIX "${folder}/" DISCOVERY_TIMEOUT 60
        PROPERTIES TIMEOUT 300)
    endif()
    target_sources(${target} PRIVATE "${file}")
  endforeach()
endfunction()

# One executable per file whose name ends in `suffix`, linked with `library`.
function(daqloom_add_each suffix library)
  daqloom_glob(files "${suffix}")
  foreach(file IN LISTS files)
    get_filename_component(target "${file}" NAME_WE)
    add_executable(${target} "${file}")
    target_link_libraries(${target} PRIVATE daqloom_engine daqloom_warnings ${library})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "programs${suffix}")
  endforeach()
endfunction()

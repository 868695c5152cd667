# Each folder of the engine is a static library; tests, benchmarks and fuzz targets are found by their
# names.
#
#   engine/CMakeLists.txt                  the folders, and what each may know
#   engine/<folder>/<subject>.cpp          the library daqloom_<folder>
#   engine/<folder>/<subject>_test.cpp     one test executable per folder: live/node has the tests of
#                                          live/node/epoch too
#   engine/<folder>/<subject>_bench.cpp    one executable each
#   engine/<folder>/<subject>_fuzz.cpp     one executable each
#   engine/<folder>/<subject>_test.hpp     for these only; not installed
#   engine/bindings/                       the Python module, built by its own CMakeLists.txt
#   libfabric/*.cpp, dpdk*.cpp             only where libfabric, or DPDK, is installed

# Finds a package, or records it as missing: daqloom_stop_if_missing reports all of them at once.
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

# The interpreter that the modules are for, and nanobind, which is one of its packages.
macro(daqloom_find_python)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module
    OPTIONAL_COMPONENTS Development.SABIModule)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET)
  if(NOT nanobind_FOUND)
    message(FATAL_ERROR "The Python modules need nanobind in the environment of "
      "${Python_EXECUTABLE}: make prepares one in .venv, or turn DAQLOOM_PYTHON off.")
  endif()
endmacro()

# The headers of libfabric; the library itself is loaded by the transport that needs it.
macro(daqloom_find_libfabric)
  find_path(DAQLOOM_LIBFABRIC_INCLUDE rdma/fi_rma.h)
  if(NOT DAQLOOM_LIBFABRIC_INCLUDE)
    message(STATUS "libfabric (Debian and Ubuntu: libfabric-dev) was not found: units will reach "
      "each other on one machine only")
  endif()
endmacro()

# Only the software switch's program needs it.
macro(daqloom_find_dpdk)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND AND DAQLOOM_SWITCH)
    pkg_check_modules(DAQLOOM_DPDK QUIET IMPORTED_TARGET libdpdk>=22.11)
  endif()
  if(NOT DAQLOOM_DPDK_FOUND)
    message(STATUS "DPDK 22.11 or later (Debian and Ubuntu: libdpdk-dev) was not found: the software "
      "switch is simulated only")
  endif()
endmacro()

# The shim of each MPI of this machine, beside the tests and the Python modules, which load it. Its
# source is installed too, for an MPI of another machine.
function(daqloom_add_mpi_shims)
  set(source "${PROJECT_SOURCE_DIR}/engine/live/transport/mpi/shim.c")
  install(FILES "${source}" DESTINATION daqloom RENAME mpi_shim.c COMPONENT python EXCLUDE_FROM_ALL)
  foreach(mpi openmpi mpich)
    find_program(DAQLOOM_MPICC_${mpi} mpicc.${mpi})
    if(DAQLOOM_MPICC_${mpi} AND DAQLOOM_MPI)
      set(shim "${PROJECT_BINARY_DIR}/tests/libdaqloom_mpi_${mpi}.so")
      add_custom_command(OUTPUT "${shim}" DEPENDS "${source}" VERBATIM
        COMMAND "${DAQLOOM_MPICC_${mpi}}" -shared -fPIC -O2 -Wall -Wextra -Werror -o "${shim}" "${source}")
      list(APPEND shims "${shim}")
      install(FILES "${shim}" DESTINATION daqloom COMPONENT python EXCLUDE_FROM_ALL)
    endif()
  endforeach()
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_custom_target(daqloom_mpi_shims ALL DEPENDS ${shims})
  if(NOT shims)
    message(STATUS "No MPI (Debian and Ubuntu: libopenmpi-dev or libmpich-dev) was found: a unit will "
      "use it when mpi_shim.c is compiled beside the modules")
  endif()
endfunction()

# The sources of engine/`folder` whose names end in `suffix`.
function(daqloom_glob result folder suffix)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/engine/${folder}/*${suffix}.cpp")
  if(NOT DAQLOOM_LIBFABRIC_INCLUDE)
    list(FILTER files EXCLUDE REGEX "/libfabric/[^/]*\\.cpp$")
  endif()
  if(NOT DAQLOOM_DPDK_FOUND)
    list(FILTER files EXCLUDE REGEX "/dpdk[^/]*\\.cpp$")
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# Precompiles the headers that most files include. Unity builds do not need it. A `target` that equals
# `first` compiles them, with the headers given after it; any other target uses the result of `first`,
# which must have the same compiler flags.
function(daqloom_precompile target first)
  if(DAQLOOM_UNITY)
    return()
  endif()
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cstdint> <functional> <map>
      <memory> <optional> <span> <string> <utility> <variant> <vector> <fmt/format.h> ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# engine/`folder` as the library daqloom_<folder>. The arguments after it name the folders that it may
# include. Through them it may include what they may. A file that includes any other folder does not
# link and fails tests/project/test_architecture.py.
function(daqloom_add_folder folder)
  if(DAQLOOM_ENGINE_FOLDERS AND NOT folder IN_LIST DAQLOOM_ENGINE_FOLDERS)
    return()
  endif()
  daqloom_glob(sources ${folder} "")
  list(FILTER sources EXCLUDE REGEX "(_(test|bench|fuzz)|/dpdk[^/]*)\\.cpp$")
  list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/")
  set(library daqloom_${folder})
  add_library(${library} STATIC ${sources})
  set_property(GLOBAL APPEND PROPERTY DAQLOOM_FOLDERS ${folder})
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/engine>)
  list(TRANSFORM ARGN PREPEND daqloom_)
  target_link_libraries(${library} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:daqloom_warnings>)
  daqloom_precompile(${library} daqloom_base)
endfunction()

# engine/softswitch/io as the library daqloom_softswitch_io: nothing else knows DPDK.
function(daqloom_add_switch_io)
  if(NOT DAQLOOM_DPDK_FOUND OR NOT TARGET daqloom_softswitch)
    return()
  endif()
  daqloom_glob(sources softswitch/io "")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
  list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/")
  add_library(daqloom_softswitch_io STATIC ${sources})
  target_link_libraries(daqloom_softswitch_io
    PUBLIC daqloom_softswitch PkgConfig::DAQLOOM_DPDK rte_net_ring PRIVATE daqloom_warnings)
endfunction()

# For find_package(daqloom) and `pkg-config daqloom`: the libraries of these folders, their headers, and
# how to link them.
function(daqloom_install_folders)
  include(CMakePackageConfigHelpers)
  include(GNUInstallDirs)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/daqloom)
  foreach(folder IN LISTS ARGN)
    set(library daqloom_${folder})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${folder})
    target_compile_features(${library} INTERFACE cxx_std_20)
    # Our headers include each other as "live/buffer.hpp", others name them <daqloom/live/buffer.hpp>.
    target_include_directories(${library} INTERFACE
      $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/daqloom>)
    install(TARGETS ${library} EXPORT daqloom ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/engine/${folder}" DESTINATION include/daqloom
      FILES_MATCHING PATTERN "*.hpp" PATTERN "*_test.hpp" EXCLUDE)
  endforeach()
  install(EXPORT daqloom NAMESPACE daqloom:: FILE daqloom-targets.cmake DESTINATION ${package})
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/daqloom-config.cmake.in"
    "${CMAKE_CURRENT_BINARY_DIR}/daqloom-config.cmake" INSTALL_DESTINATION ${package})
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/daqloom-config-version.cmake"
    VERSION "${DAQLOOM_VERSION}" COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/daqloom-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/daqloom-config-version.cmake" DESTINATION ${package})
  file(RELATIVE_PATH DAQLOOM_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/daqloom.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/daqloom.pc"
    @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/daqloom.pc"
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# Suites in which a test may skip. In all others, a skipped test fails the run.
set(DAQLOOM_MAY_SKIP
  Libfabric/TransportConformance  # libfabric does not report that a peer has died
  Mpi/TransportConformance        # a rank of MPI that dies ends all others
  MpiTransport                    # without MPI
)

# One ctest test, named `folder`/<suite>, for each suite of a test program.
function(daqloom_discover_suites target folder label)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM BYPRODUCTS "${file}"
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${target}>" "-DFILE=${file}"
      "-DFOLDER=${folder}" "-DLABEL=${label}" "-DMAY_SKIP=${DAQLOOM_MAY_SKIP}"
      -P "${PROJECT_SOURCE_DIR}/cmake/DaqloomSuites.cmake")
  # A program that is not built gives a failing test, so that it is noticed.
  file(WRITE "${file}.in" "if(EXISTS [==[${file}]==])\n  include([==[${file}]==])\nelse()\n"
    "  add_test([==[${folder}/not built]==] [==[${target}]==])\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}.in")
endfunction()

function(daqloom_add_tests)
  get_property(folders GLOBAL PROPERTY DAQLOOM_FOLDERS)
  foreach(library IN LISTS folders)
    daqloom_glob(tests ${library} "_test")
    foreach(file IN LISTS tests)
      get_filename_component(folder "${file}" DIRECTORY)
      string(REGEX REPLACE "^engine/([^/]+(/[^/]+)?).*" "\\1" folder "${folder}")
      string(REPLACE "/" "_" target "${folder}_test")
      if(NOT TARGET ${target})
        add_executable(${target})
        target_link_libraries(${target} PRIVATE
          daqloom_${library} daqloom_warnings GTest::gtest_main)
        if(folder STREQUAL "softswitch/io")
          target_link_libraries(${target} PRIVATE daqloom_softswitch_io)
        endif()
        set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
        # Each test runs once: to optimise it takes longer than it saves. The libraries keep -O3.
        target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
        daqloom_precompile(${target} base_test <gtest/gtest.h>)
        set(label quick)
        if(folder MATCHES "^(live/|softswitch/io)")
          set(label live)  # processes, sockets, devices; a quick test may start tshark
        endif()
        daqloom_discover_suites(${target} ${folder} ${label})
      endif()
      target_sources(${target} PRIVATE "${file}")
    endforeach()
  endforeach()
endfunction()

# Each fuzz target on the inputs that are known for it, engine/<folder>/corpus/<target>, as a test.
function(daqloom_add_fuzz_tests)
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/engine/*")
  list(FILTER inputs INCLUDE REGEX "/corpus/[^/]+$")
  foreach(folder IN LISTS inputs)
    get_filename_component(target "${folder}" NAME)
    add_test(NAME "fuzz/${target}" COMMAND ${target} -runs=0 "${folder}")
    set_tests_properties("fuzz/${target}" PROPERTIES TIMEOUT 300 LABELS quick)
  endforeach()
endfunction()

# The benchmarks, compiled as one unit without optimisation and not linked: a test build finds what no
# longer compiles.
function(daqloom_compile_benchmarks)
  daqloom_glob(files . "_bench")
  list(TRANSFORM files PREPEND "${PROJECT_SOURCE_DIR}/")
  file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/benchmarks/event_building/*.cpp")
  list(FILTER programs EXCLUDE REGEX "/(mpi|sockets_uring)\\.cpp$")  # need packages of `make bench`
  add_library(daqloom_benchmarks OBJECT ${files} ${programs})
  get_property(folders GLOBAL PROPERTY DAQLOOM_FOLDERS)
  list(TRANSFORM folders PREPEND daqloom_)
  target_link_libraries(daqloom_benchmarks PRIVATE ${folders} daqloom_warnings benchmark::benchmark
    $<$<TARGET_EXISTS:daqloom_softswitch_io>:daqloom_softswitch_io>)
  target_compile_options(daqloom_benchmarks PRIVATE -O0)
  set_target_properties(daqloom_benchmarks PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  set_source_files_properties(${programs} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # each has a main
endfunction()

# One executable per file whose name ends in `suffix`, linked with its folder and with `library`.
function(daqloom_add_each suffix library)
  get_property(folders GLOBAL PROPERTY DAQLOOM_FOLDERS)
  foreach(folder IN LISTS folders)
    daqloom_glob(files ${folder} "${suffix}")
    foreach(file IN LISTS files)
      get_filename_component(target "${file}" NAME_WE)
      add_executable(${target} "${file}")
      target_link_libraries(${target} PRIVATE daqloom_${folder} daqloom_warnings ${library})
      if(target MATCHES "^dpdk_")
        target_link_libraries(${target} PRIVATE daqloom_softswitch_io)
      endif()
      set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "programs${suffix}")
    endforeach()
  endforeach()
endfunction()

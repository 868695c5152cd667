# Runs after a test program is linked. It writes a file for ctest with one test for each suite of the
# program: a process for each of thousands of tests would take longer than most tests do. Live tests
# mostly wait. Their suites are split by parameter too, so that they wait in parallel.
#
#   PROGRAM   the test program             FILE   the file to write
#   FOLDER    prefix of the tests' names   LABEL  label of the tests
#   MAY_SKIP  suites in which a skipped test does not fail the run
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${PROGRAM}" --gtest_list_tests
  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[ \t]+#[^\n]*" "" listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")
set(tests "")
set(seen "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^  [^/]+(/.*)?$")
    set(parameter "")
    if(LABEL STREQUAL "live")
      set(parameter "${CMAKE_MATCH_1}")
    endif()
    set(name "${FOLDER}/${suite}${parameter}")
    if(name IN_LIST seen)
      continue()
    endif()
    list(APPEND seen "${name}")
    string(APPEND tests
      "add_test([==[${name}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*${parameter}]==])\n"
      "set_tests_properties([==[${name}]==] PROPERTIES TIMEOUT 300 LABELS ${LABEL}")
    if(NOT suite IN_LIST MAY_SKIP)
      string(APPEND tests " FAIL_REGULAR_EXPRESSION [==[\\[  SKIPPED \\]]==]")
    endif()
    string(APPEND tests ")\n")
  endif()
endforeach()
file(WRITE "${FILE}" "${tests}")

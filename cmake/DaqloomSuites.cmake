# Run after the link of a test program: writes a file for ctest with one test for each of its suites,
# since a process for each of thousands of tests costs more than most of the tests. Live tests wait more
# than they compute: of those, one for each parameter of a suite, so that they wait side by side.
#
#   PROGRAM  the program     FILE   the file to write
#   FOLDER   prefix of names LABEL  of all of them
#   MAY_SKIP suites in which a skipped test is no failure
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

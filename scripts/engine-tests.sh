#!/bin/bash
# engine-tests.sh BUILD JOBS [OPTION...]    runs ctest in a build, with options of it
#
# One line per failure and the totals; what passed is in BUILD/Testing/Temporary/LastTest.log.
set -o pipefail
ctest --test-dir "$1" -j "$2" --output-on-failure --no-tests=error "${@:3}" |
    grep -Ev '^ +Start|Passed +[0-9.]+ sec$|^Internal|^$'

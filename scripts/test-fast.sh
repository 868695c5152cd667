#!/bin/bash
# test-fast.sh JOBS            builds and runs the tests that start no process and use no network
# test-fast.sh JOBS FOLDER     those of a folder (or of a file's folder) of engine/, src/daqloom/ or packages/
#
# A wrong folder is refused before anything is built.
set -euo pipefail
jobs=$1
folder=${2:-}
[ -f "$folder" ] && folder=$(dirname "$folder")
folder=${folder%/}

engine_tests() {
    scripts/engine-tests.sh build/develop "$jobs" --label-exclude live "$@"
}
build() { scripts/step.sh build-develop cmake --build build/develop -j "$jobs" "$@"; }
python_tests() { .venv/bin/python -m pytest -q -n "$jobs" --dist worksteal -m 'not process and not soak' "$@"; }

no_folder() {
    echo "IN=$folder is no folder of engine/, src/daqloom/ or packages/: give one that has tests, as in" \
        "make test-fast IN=engine/systems" >&2
    exit 2
}
# Message for a folder without quick tests.
no_quick_test() {
    echo "IN=$folder has no test that starts no process and uses no network: run make test" >&2
    exit 2
}

[ -z "$folder" ] || [ -d "$folder" ] || no_folder

case $folder in
'')
    make .venv/packages module-develop
    build
    engine_tests
    python_tests
    ;;
engine/*)
    # engine/live/node and engine/live/node/epoch: the program live_node_test
    name=$(cut -d/ -f2-3 <<<"$folder")
    mapfile -t programs < <(find "$folder" -name '*_test.cpp' -printf '%h\n' | cut -d/ -f2-3 | sort -u |
        sed 's|/|_|g; s|$|_test|')
    [ ${#programs[@]} -gt 0 ] || no_quick_test
    make configure-develop
    build --target "${programs[@]}"
    ctest --test-dir build/develop --show-only --label-exclude live --tests-regex "^$name/" |
        grep '^Total Tests: [1-9]' >/dev/null || no_quick_test
    engine_tests --tests-regex "^$name/"
    ;;
src/daqloom | src/daqloom/* | packages/*)
    tests=$(sed -E 's|^src/daqloom|tests|; s|^(packages/[^/]+).*|\1/tests|' <<<"$folder")
    [ -d "$tests" ] || no_quick_test
    make .venv/packages module-develop
    python_tests "$tests" || { [ $? = 5 ] && no_quick_test; exit 1; }
    ;;
*) no_folder ;;
esac

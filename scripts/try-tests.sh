#!/bin/bash
# try-tests.sh SUITE [TARGET...]: as root, runs `make test`, or the named targets of the Makefile, on the
# committed tree in a system of that Debian suite (bookworm, trixie). The system stays in build/system/
# SUITE-tests for the next try, with its builds; MAKEFLAGS, CLANG and so on are passed with the targets, as
# in try-tests.sh trixie test JOBS=4.
set -euo pipefail
. scripts/system.sh
suite=$1
shift
make_system "$suite" "build/system/$suite-tests"
tree=$system/try/daqloom
[ -e "$tree/.git" ] || git clone -q --no-hardlinks . "$tree"
git -C "$tree" fetch -q --tags "$PWD" HEAD
git -C "$tree" checkout -q --force --detach FETCH_HEAD
in_system "command -v g++ make git cmake >/dev/null || {
        apt-get update -q && apt-get install -y -q --no-install-recommends cmake g++ git make; }
    cd daqloom && make ${*:-test}"

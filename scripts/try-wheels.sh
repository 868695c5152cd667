#!/bin/bash
# try-wheels.sh SUITE [FOLDER]: as root, installs the wheels of dist/ in a new system of that Debian suite
# (bookworm has Python 3.11, trixie 3.13), which has nothing else of ours, and runs what a newcomer runs.
# The system stays in FOLDER (default: build/system/SUITE) for the next try.
set -euo pipefail
. scripts/system.sh
make_system "$1" "${2:-build/system/$1}"
rm -rf "$system/wheels" "$system/try"
mkdir "$system/wheels" "$system/try"
cp dist/*.whl "$system/wheels/"

size() { in_system "du -sm --exclude=pip --exclude=setuptools /try/$1/lib | cut -f1"; }

for extras in "" "[live]" "[all]"; do
    name=venv${extras//[\[\]]/-}
    in_system "python3 -m venv $name && $name/bin/pip install -q --find-links /wheels 'daqloom$extras'"
    echo "daqloom$extras: $(size "$name") MB"
done
in_system "venv/bin/daqloom --version; venv/bin/daqloom demo"
in_system "venv-live-/bin/daqloom measure laptop --duration '2 s'"
in_system "venv-all-/bin/daqloom demo && ls -l demo-output"

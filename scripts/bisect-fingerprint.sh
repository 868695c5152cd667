#!/bin/bash
# bisect-fingerprint.sh SCENARIO              prints the fingerprint of a simulation of the checked-out version
# bisect-fingerprint.sh SCENARIO FINGERPRINT  for `git bisect run`: good (0) with this fingerprint, bad (1) with
#                                             another; a version that does not build or run is skipped (125)
set -uo pipefail
scenario=$1
expected=${2:-}

make module-develop >&2 || exit 125
found=$(.venv/bin/python -m daqloom simulate "$scenario" --json --quiet |
    .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["fingerprint"])') || exit 125
echo "$found"
[ -z "$expected" ] || [ "$found" = "$expected" ]

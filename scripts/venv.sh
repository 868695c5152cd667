#!/bin/sh
# venv.sh [PYTHON]: makes .venv with the given Python, or with the first 3.11 or newer on PATH.
set -e

# Candidates are run, not only found: a pyenv shim may stand for a version that is not selected.
is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

python=$1
if [ -n "$python" ]; then
    is_recent "$python" ||
        { echo "PYTHON=$python is no Python 3.11 or newer: name one that is." >&2; exit 1; }
else
    for name in python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
        if is_recent "$name"; then python=$name; break; fi
    done
    [ -n "$python" ] || {
        echo "daqloom needs Python 3.11 or newer and found none on PATH: install it (on Debian 12:" \
            "apt-get install python3) or name one with: make PYTHON=/path/to/python" >&2
        exit 1
    }
fi

# Debian's own interpreter comes in parts; others (pyenv, conda) are whole.
lacking=$("$python" - <<'EOF'
import importlib.util, pathlib, sys, sysconfig

if sys.base_prefix == "/usr":
    name = f"python3.{sys.version_info.minor}"
    if importlib.util.find_spec("ensurepip") is None:
        print(f"{name}-venv")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        print(f"{name}-dev")
EOF
)
"$(dirname "$0")/debian-packages.sh" $lacking

"$python" -m venv --clear .venv

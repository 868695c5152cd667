#!/bin/sh
# python.sh path [PYTHON]      prints the interpreter: the given one, or the first 3.11 or newer on PATH
# python.sh packages [PYTHON]  prints the Debian packages that it lacks for environments, extensions
set -e

# Candidates are run, not only found: a pyenv shim may stand for a version that is not selected.
path_of() {
    "$1" -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' 2>/dev/null
}

find_python() {
    if [ -n "$1" ]; then
        path_of "$1" && return
        echo "PYTHON=$1 is no Python 3.11 or newer: name one that is." >&2
        return 1
    fi
    for name in python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
        path_of "$name" && return
    done
    echo "daqloom needs Python 3.11 or newer and found none on PATH: install it (on Debian 12:" \
        "apt-get install python3) or name one with: make PYTHON=/path/to/python" >&2
    return 1
}

python=$(find_python "$2")
case $1 in
path) echo "$python" ;;
packages)
    # Debian's own interpreter comes in parts; others (pyenv, conda) are whole.
    "$python" - <<'EOF'
import importlib.util, pathlib, sys, sysconfig

if sys.base_prefix == "/usr":
    name = f"python3.{sys.version_info.minor}"
    if importlib.util.find_spec("ensurepip") is None:
        print(f"{name}-venv")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        print(f"{name}-dev")
EOF
    ;;
esac

#!/bin/sh
# Prints the path of a Python 3.11 or newer, or says what to install.
# Each candidate is run: a pyenv shim may be on PATH for a version that is not selected.
for name in "$@" python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
    path=$("$name" -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' \
        2>/dev/null) && { echo "$path"; exit 0; }
done
echo "daqloom needs Python 3.11 or newer and found none on PATH: install it" \
    "(on Debian 12: apt-get install python3) or name one with: make PYTHON=/path/to/python" >&2
exit 1

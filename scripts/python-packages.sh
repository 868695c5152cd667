#!/bin/sh
# Prints the Debian packages that the given Python lacks to make environments and build extensions.
# Only Debian's own interpreter comes in parts; others (pyenv, conda) are whole.
"$1" - <<'EOF'
import importlib.util, pathlib, sys, sysconfig

if sys.base_prefix == "/usr":
    python = f"python3.{sys.version_info.minor}"
    if importlib.util.find_spec("ensurepip") is None:
        print(f"{python}-venv")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        print(f"{python}-dev")
EOF

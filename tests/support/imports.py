"""Modules that a program imports, in a process of its own."""

import subprocess
import sys


def imported(code: str) -> set[str]:
    """Names of all modules that a new interpreter has once it has run `code`."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())

"""The times in README.md: every command of daqloom has one, and measured times are near.

A measured time depends on the machine and its load, so a time that is off gives a warning and never
fails a test.
"""

import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from support.repository import ROOT

FACTOR = 2
COMMAND = re.compile(r"^\$ (.*\b(?:daqloom|demo)\b.*?) +# ([0-9.]+) s: .+$", re.MULTILINE)
DAQLOOM = f"{sys.executable} -m daqloom"


def demo() -> str:
    """The commands of `make demo` after its build."""
    found = re.search(r"^demo: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    return found[1].replace("$(bin)/daqloom", DAQLOOM).replace("$$", "$")


def times() -> dict[str, float]:
    """Time (s) of each command, as the shell takes it."""
    found = COMMAND.findall((ROOT / "README.md").read_text())
    return {command.replace(".venv/bin/daqloom", DAQLOOM): float(s) for command, s in found}


def test_every_command_of_the_readme_has_a_time() -> None:
    lines = re.findall(r"^\$ (?!git )(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(lines) == len(times()) > 4
    assert demo().count(DAQLOOM) == 5


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.filterwarnings("default")
def test_measured_times_are_near_those_of_the_readme(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")  # the demo reads one
    for command, stated_s in times().items():
        script = demo() if command.startswith("make ") else command
        began = time.monotonic()
        subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, check=True)
        took_s = time.monotonic() - began
        if not stated_s / FACTOR <= took_s <= stated_s * FACTOR:
            warnings.warn(
                f"README.md: `{command}` took {took_s:.1f} s with a load of "
                f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, not {stated_s:g} s",
                stacklevel=1,
            )

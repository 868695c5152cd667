"""Folders of the repository that tests read, and the targets of its Makefile."""

import re
from pathlib import Path

SUPPORT = Path(__file__).parent
DATA = SUPPORT / "data"
TESTS = SUPPORT.parent
ROOT = TESTS.parent


def make_targets() -> set[str]:
    """Return the targets of the Makefile that are no files."""
    makefile = (ROOT / "Makefile").read_text()
    return set(" ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split())

"""Folders of the repository that tests read."""

from pathlib import Path

SUPPORT = Path(__file__).parent
DATA = SUPPORT / "data"
TESTS = SUPPORT.parent
ROOT = TESTS.parent

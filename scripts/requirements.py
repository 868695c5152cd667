"""Print what pyproject.toml requires: requirements.py build|run|EXTRA...

So that the Makefile can install dependencies before, and apart from, the package itself.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
groups: dict[str, list[str]] = {
    "build": project["build-system"]["requires"],
    "run": project["project"]["dependencies"],
    **project["project"]["optional-dependencies"],
}
for group in sys.argv[1:]:
    print("\n".join(groups[group]))

"""Print what the pyproject.toml files require: requirements.py build|run|packages|EXTRA...

`packages` are the requirements of all folders of packages/. The Makefile installs dependencies
before, and apart from, daqloom itself and its packages, which are left out.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def groups_of(folder: Path) -> dict[str, list[str]]:
    """Return the requirements to build and to run a project, and those of its extras."""
    document: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())
    project = document["project"]
    return {
        "build": document["build-system"]["requires"],
        "run": project["dependencies"],
        **project.get("optional-dependencies", {}),
    }


groups = groups_of(ROOT)
packages = [groups_of(file.parent) for file in sorted(ROOT.glob("packages/*/pyproject.toml"))]
groups["packages"] = [each for package in packages for own in package.values() for each in own]


def requirements(group: str) -> Iterator[str]:
    """Yield the requirements of a group, and of the extras that it contains."""
    for each in groups[group]:
        extras = re.match(r"daqloom\[(.*)\]", each)
        if extras:
            yield from (inner for extra in extras[1].split(",") for inner in requirements(extra))
        elif not each.startswith("daqloom"):
            yield each


print(*dict.fromkeys(each for group in sys.argv[1:] for each in requirements(group)), sep="\n")

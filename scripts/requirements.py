"""Print what the pyproject.toml files require: requirements.py build|run|packages|EXTRA...

`packages` are the requirements of all folders of packages/. The Makefile installs dependencies
before, and apart from, daqloom itself and its packages.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def build_and_run(document: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the requirements to build and to run a project, without those from this repository."""
    run = document["project"]["dependencies"]
    return document["build-system"]["requires"], [it for it in run if not it.startswith("daqloom")]


project = tomllib.loads((ROOT / "pyproject.toml").read_text())
build, run = build_and_run(project)
groups: dict[str, list[str]] = {
    "build": build,
    "run": run,
    "packages": [
        requirement
        for file in sorted(ROOT.glob("packages/*/pyproject.toml"))
        for document in [tomllib.loads(file.read_text())]
        for part in (
            *build_and_run(document),
            document["project"].get("optional-dependencies", {}).get("dev", []),
        )
        for requirement in part
    ],
    **project["project"]["optional-dependencies"],
}
for group in sys.argv[1:]:
    print("\n".join(groups[group]))

"""Git trees made by tests, without the settings of the user who runs them."""

import os
import subprocess
from pathlib import Path

_NAMES = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
_WHO = {f"GIT_{name}": "x@y" for name in _NAMES}


def git(tree: Path, *words: str) -> str:
    """Run git in a tree and return its output."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    outside = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", tree, *words],
        env=outside | settings | _WHO,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def committed(tree: Path) -> str:
    """Make a folder a git tree with all its files committed, and return the commit."""
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "Begin")
    return git(tree, "rev-parse", "HEAD")

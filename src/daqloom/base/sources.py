"""The commit of daqloom's sources. The build backend runs this file by itself, without daqloom."""

import subprocess
from pathlib import Path

RECORD = Path(__file__).with_name("commit.txt")
"""Commit of an sdist, of a wheel or of an archive of git; a placeholder in a git tree."""
_PLACEHOLDER = "$"
_TREE = Path(__file__).parents[3]


def commit(record: Path = RECORD, tree: Path = _TREE) -> str:
    """Return the commit, with " (modified)" if a file differs from it: that recorded by the build,
    or the present one of a git tree, where an editable installation has its sources. Empty if
    unknown."""
    recorded = record.read_text().strip()
    return _checked_out(tree) if recorded.startswith(_PLACEHOLDER) else recorded


def _checked_out(tree: Path) -> str:
    if not (tree / ".git").exists():
        return ""
    # Variables such as GIT_DIR, which git sets in hooks, do not redirect the command.
    command = ["git", "--git-dir=.git", "--work-tree=.", "--no-optional-locks", "describe"]
    shown = ["--always", "--abbrev=40", "--exclude=*", "--dirty= (modified)"]
    try:
        done = subprocess.run([*command, *shown], cwd=tree, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""Version and commit of daqloom's sources. Builds run this file by itself, without daqloom; as a
program it prints the version."""

import re
import subprocess
from pathlib import Path

RECORD = Path(__file__).with_name("commit.txt")
"""Commit and version of an sdist, of a wheel or of an archive of git, a line each; placeholders in
a git tree."""
FIRST = "0.1.0"
"""Version of the first tag, which development versions before it name."""
_PLACEHOLDER = "$"
_TREE = Path(__file__).parents[3]


def commit(record: Path = RECORD, tree: Path = _TREE) -> str:
    """Return the commit, with " (modified)" if a file differs from it: that recorded by the build,
    or the present one of a git tree, where an editable installation has its sources. Empty if
    unknown."""
    recorded = _record_line(record, 0)
    if recorded is not None:
        return recorded
    return _git(tree, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty= (modified)")


def version(record: Path = RECORD, tree: Path = _TREE) -> str:
    """Return the version: 0.2.0 at the tag v0.2.0, 0.2.0.post3 three commits after it, and before
    any tag `FIRST` with the number of commits, such as 0.1.0.dev40. Without git and a record of a
    build this number is 0."""
    described = _record_line(record, 1)
    if described is None:
        described = _git(tree, "describe", "--tags", "--match=v[0-9]*")
        described = described or f"{FIRST}.dev{_git(tree, 'rev-list', '--count', 'HEAD') or 0}"
    return re.sub(r"-(\d+)-g[0-9a-f]+$", r".post\1", described.removeprefix("v")) or f"{FIRST}.dev0"


def _record_line(record: Path, line: int) -> str | None:
    """Return a line of the record; None for a placeholder."""
    text = [*record.read_text().splitlines(), "", ""][line].strip()
    return None if text.startswith(_PLACEHOLDER) else text


def _git(tree: Path, *arguments: str) -> str:
    """Return the output of git for a tree; empty if it has none."""
    if not (tree / ".git").exists():
        return ""
    # Variables such as GIT_DIR, which git sets in hooks, do not redirect the command.
    command = ["git", "--git-dir=.git", "--work-tree=.", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    print(version())

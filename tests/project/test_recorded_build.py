"""Sdists and wheels contain the commit from which they were built, and the version by its tags."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.git import committed, git
from support.repository import ROOT

pytestmark = pytest.mark.process

RECORD = "daqloom/base/commit.txt"
BUILD = """
import sys
sys.path.insert(0, "scripts/backend")
import recorded_build
print(getattr(recorded_build, "build_" + sys.argv[1])(sys.argv[2], {settings}))
"""
PACKAGE = ("src/daqloom/__init__.py", "src/daqloom/CITATION.cff")
PURE = {"wheel.cmake": "false", "wheel.py-api": "py3"}
"""Settings of a wheel without compiled modules."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The part of the sources that a wheel without compiled modules needs."""
    tree = tmp_path / "tree"
    for name in ("src/daqloom/base", "scripts/backend", "scenarios", "studies", "published"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", *PACKAGE):
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    (tree / ".gitignore").write_text("__pycache__/\n")
    return tree


def built(kind: str, tree: Path, folder: Path) -> Path:
    code = BUILD.format(settings=PURE if kind == "wheel" else {})
    command = [sys.executable, "-c", code, kind, str(folder)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


def recorded(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as opened:
        commit, _version = opened.read(RECORD).decode().splitlines()
        return commit


def test_a_build_records_the_commit_and_leaves_the_tree_as_it_was(tree: Path, tmp_path) -> None:
    commit = committed(tree)
    git(tree, "tag", "v1.2.0")
    wheel = built("wheel", tree, tmp_path)
    assert wheel.name.startswith("daqloom-1.2.0-")
    assert recorded(wheel) == commit
    with tarfile.open(built("sdist", tree, tmp_path)) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    assert git(tree, "status", "--porcelain") == ""
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert (unpacked / "src" / RECORD).read_text() == f"{commit}\n1.2.0\n"
    committed(unpacked)  # a packager's own tree
    wheel = built("wheel", unpacked, tmp_path)
    assert wheel.name.startswith("daqloom-1.2.0-")
    assert recorded(wheel) == commit
    with zipfile.ZipFile(wheel) as opened:
        assert opened.read("daqloom/CITATION.cff") == (ROOT / "CITATION.cff").read_bytes()
    (tree / "README.md").write_text("another")
    assert recorded(built("wheel", tree, tmp_path)) == f"{commit} (modified)"


def test_sources_without_git_have_no_commit_and_archives_of_git_have_theirs(
    tree: Path, tmp_path: Path
) -> None:
    assert recorded(built("wheel", tree, tmp_path)) == ""
    shutil.copy(ROOT / ".gitattributes", tree)
    commit = committed(tree)
    git(tree, "tag", "v1.2.0")
    git(tree, "archive", "--output", str(tmp_path / "archive.tar"), "HEAD")
    with tarfile.open(tmp_path / "archive.tar") as opened:
        text = opened.extractfile(f"src/{RECORD}")
        assert text is not None
        assert text.read().decode().splitlines() == [commit, "v1.2.0"]

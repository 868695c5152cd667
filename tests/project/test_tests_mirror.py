"""The folders of tests mirror the sources: the path of a file says where its tests are.

Tests of src/daqloom/<folder>/<name>.py, or of a package <name>, are in
tests/<folder>/test_<name>.py; those of one aspect alone are in test_<name>_<aspect>.py. A
distribution in packages/ has its own src/ and tests/, in the same way. Tests of the compiled module
are in tests/engine/test_<folder of engine/>_<aspect>.py.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from support.repository import ROOT

SOURCES = {"tests": ROOT / "src" / "daqloom", "tests/engine": ROOT / "engine"} | {
    f"packages/{init.parts[-4]}/tests": init.parent
    for init in ROOT.glob("packages/*/src/*/__init__.py")
}
"""Folders of tests, each with the sources that it mirrors."""
MARKS = ("__init__.py", "README.md")
"""Files that every package of Python or folder of the engine has one of."""
APART = ("project", "support")
"""Tests of the repository itself; fakes, data and helpers."""


def subjects(folder: Path) -> set[str]:
    """The modules and packages of a folder of sources."""
    found = {file.stem for file in folder.glob("*.py")} - {"__init__", "__main__"}
    return found | {file.parent.name for mark in MARKS for file in folder.glob(f"*/{mark}")}


def misplaced(path: str) -> str:
    """Why a file of tests is not where its subject is; empty if it is.

    A name such as test_store_damage.py has two beginnings, `store` and `store_damage`.
    """
    tests = max((folder for folder in SOURCES if path.startswith(f"{folder}/")), key=len)
    file = PurePosixPath(path).relative_to(tests)
    folder = SOURCES[tests] / file.parent
    if not any((folder / mark).is_file() for mark in MARKS):
        return f"{path}: {SOURCES[tests].name} has no package {file.parent}"
    words = file.stem.removeprefix("test_").split("_")
    beginnings = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
    if not file.name.startswith("test_") or not beginnings & subjects(folder):
        return f"{path}: its name does not begin with test_ and a name in {file.parent}"
    return ""


def mirrored(tests: str) -> Iterator[str]:
    """Python files below a folder of tests of which each has its subject in the sources."""
    for file in (ROOT / tests).rglob("*.py"):
        if file.relative_to(ROOT / tests).parts[0] not in APART:
            yield file.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("tests", SOURCES)
def test_each_file_of_tests_is_where_its_subject_is(tests: str) -> None:
    paths = list(mirrored(tests))
    assert paths
    reasons = [reason for path in sorted(paths) if (reason := misplaced(path))]
    assert not reasons, "\n".join(reasons)


def test_only_tests_are_collected_and_all_of_them_are() -> None:
    helpers = {file.name for tests in SOURCES for file in (ROOT / tests / "support").rglob("*.py")}
    assert not [name for name in helpers if name.startswith("test_") or name.endswith("_test.py")]
    project = {file.name for file in (ROOT / "tests" / "project").rglob("*.py")}
    assert not [name for name in project if not name.startswith("test_")]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("study/store/test_store.py", ""),
        ("study/store/test_store_damage.py", ""),
        ("device/test_linux.py", ""),
        ("study/test_store.py", ""),
        ("engine/test_ethernet_classes.py", ""),
        ("engine/test_classes.py", "does not begin with"),
        ("test_store.py", "does not begin with"),
        ("study/store/test_damage_store.py", "does not begin with"),
        ("study/store/test_storehouse.py", "does not begin with"),
        ("study/test_engine.py", "does not begin with"),
        ("study/store/store.py", "does not begin with"),
        ("studies/test_store.py", "has no package studies"),
    ],
)
def test_a_misplaced_file_is_found(path: str, reason: str) -> None:
    found = misplaced(f"tests/{path}")
    assert reason in found
    assert bool(reason) == bool(found)

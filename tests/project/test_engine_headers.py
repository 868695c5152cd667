"""Headers of the engine: those for tests have names of their own, all others stand in a README."""

import re

import pytest

from support.engine_sources import includes, is_test
from support.repository import ROOT

ENGINE = ROOT / "engine"


def included(*, by_tests: bool) -> set[str]:
    """The headers that the engine's tests include, or all of its other files."""
    return {
        header
        for path in ENGINE.rglob("*.?pp")
        if is_test(path.name) == by_tests
        for header in includes(path.read_text())
    }


FOR_USERS = {"live/hook.hpp"}
"""Headers that only programs of users include."""


def headers() -> set[str]:
    return {path.relative_to(ENGINE).as_posix() for path in ENGINE.rglob("*.hpp")}


def test_a_header_for_tests_has_the_name_of_one_and_folders_have_readmes() -> None:
    found = headers()
    assert found
    for_tests = {header for header in found if header.endswith("_test.hpp")}
    assert for_tests & included(by_tests=False) == set()
    assert for_tests - included(by_tests=True) == set()
    assert found - included(by_tests=False) - FOR_USERS == for_tests
    folders = {path.name for path in ENGINE.iterdir() if path.is_dir()}
    assert folders == {path.parent.name for path in ENGINE.glob("*/README.md")}


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in ENGINE.glob("*/README.md")))
def test_the_readme_of_a_folder_names_its_headers(folder: str) -> None:
    home = ENGINE / folder
    named = set(re.findall(r"`((?:\w+/)*\w+\.hpp)`", (home / "README.md").read_text()))
    paths = [path.relative_to(home).parts for path in home.rglob("*.hpp")]
    forms = [{"/".join(path[k:]) for k in range(len(path))} for path in paths]
    assert {name for name in named - set().union(*forms) if not (ENGINE / name).exists()} == set()
    unnamed = {min(ends, key=len) for ends in forms if not named & ends}
    assert {name for name in unnamed if not name.endswith("_test.hpp")} == set()

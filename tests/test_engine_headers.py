"""Headers of the engine: those for tests are told by their names."""

from pathlib import Path

from test_architecture import includes, is_test

ENGINE = Path(__file__).parent.parent / "engine"


def included(*, by_tests: bool) -> set[str]:
    """The headers that the engine's tests include, or all of its other files."""
    return {
        header
        for path in ENGINE.rglob("*.?pp")
        if is_test(path.name) == by_tests
        for header in includes(path.read_text())
    }


def headers() -> set[str]:
    return {path.relative_to(ENGINE).as_posix() for path in ENGINE.rglob("*.hpp")}


def test_a_header_is_for_tests_exactly_if_its_name_says_so() -> None:
    found = headers()
    assert found
    for_tests = {header for header in found if header.endswith("_test.hpp")}
    assert for_tests & included(by_tests=False) == set()
    assert for_tests - included(by_tests=True) == set()
    assert found - included(by_tests=False) == for_tests

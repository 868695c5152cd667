"""Wheels need old enough symbols of the C and C++ libraries, and no other library."""

import re
import subprocess
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.process

GLIBC, GLIBCXX = (2, 34), (3, 4, 29)
"""Newest symbols of manylinux_2_34, and of the libstdc++ of g++ 11."""
COMPILER = 12
"""Version of g++ of the released wheels."""
LIBRARIES = {"libc", "libgcc_s", "libm", "libstdc++", "ld-linux-x86-64"}


def _readelf(option: str) -> str:
    """Output of readelf for the engine's module."""
    module = find_spec("daqloom._engine")
    assert module is not None
    assert module.origin is not None
    command = ["readelf", option, "--wide", module.origin]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("library", "newest"), [("GLIBC", GLIBC), ("GLIBCXX", GLIBCXX)])
def test_the_engine_needs_no_newer_symbols_than_its_tag_allows(
    library: str, newest: tuple[int, ...]
) -> None:
    compilers = re.findall(r"GCC: .* (\d+)\.", _readelf("--string-dump=.comment"))
    if max(map(int, compilers)) > COMPILER:  # with its newer libraries; its wheels get another tag
        pytest.skip(f"released wheels are compiled by g++ {COMPILER}")
    versions = re.findall(rf"\bName: {library}_([\d.]+)", _readelf("--version-info"))
    assert versions
    assert max(tuple(map(int, version.split("."))) for version in versions) <= newest


def test_the_modules_link_no_network_libraries() -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.+?)\.so", _readelf("--dynamic"))
    assert needed
    assert set(needed) <= LIBRARIES

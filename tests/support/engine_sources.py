"""Includes and tests of the engine's C++ sources."""

import re
from collections.abc import Iterator


def includes(text: str) -> Iterator[str]:
    """Headers named by the include lines of a C++ source, comments aside."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for line in re.finditer(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', code, flags=re.MULTILINE):
        yield line.group(1)


def names_of_tests(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, suite and name of every test in a C++ source."""
    for match in re.finditer(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", text):
        yield text.count("\n", 0, match.start()) + 1, match[1], match[2]


def is_test(path: str) -> bool:
    return path.endswith(("_test.hpp", "_test.cpp", "_bench.cpp", "_fuzz.cpp"))

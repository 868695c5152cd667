"""Includes of the engine's C++ sources."""

import re
from collections.abc import Iterator


def includes(text: str) -> Iterator[str]:
    """Headers named by the include lines of a C++ source, comments aside."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for line in re.finditer(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', code, flags=re.MULTILINE):
        yield line.group(1)


def is_test(path: str) -> bool:
    return path.endswith(("_test.hpp", "_test.cpp", "_bench.cpp", "_fuzz.cpp"))

"""Parses untrusted TOML: text that would cost too much time or memory is refused before parsing."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.files import read_text

DEEPEST_KEY = 16
"""Most parts of a dotted key or of a table's header; no known key has more than four."""
INTEGER_BITS = 64
"""Most bits of TOML's whole numbers; Python cannot print one of more than 4300 digits."""

# Strings, which parts of a key may be, and comments: ended or not, each is read once.
_TEXT = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?'''
    r"""|\'\'\'(?:[^']|'(?!''))*+(?:'{3,5})?"""
    r"""|"(?:[^"\\\n]|\\[^\n])*+"?"""
    r"""|'[^'\n]*+'?"""
    r"""|\#[^\n]*+""",
    re.DOTALL,
)
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST_KEY}}}")


class TomlError(ValueError):
    """The text cannot be parsed; the message continues a sentence that names the file."""


class IntegerError(TomlError):
    """A whole number has more than 64 bits: that of `key`."""

    def __init__(self, key: str) -> None:
        super().__init__(f"gives {key[:80] or 'a key'} a whole number of more than 64 bits")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the tables of a TOML text; raises TomlError. Time and memory of `tomllib` grow with the
    square of a dotted key's parts."""
    skeleton = _TEXT.sub(lambda token: "" if token[0][0] == "#" else "_", text)
    if _DEEP_KEY.search(skeleton):
        raise TomlError(f"has a dotted key of more than {DEEPEST_KEY} parts; known keys have fewer")
    try:
        document = tomllib.loads(text)
        check_integers(document)
    except RecursionError:
        raise TomlError("is nested too deeply; expected tables of keys") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise TomlError(f"is not valid TOML: {message[:1].lower() + message[1:]}") from None
    except IntegerError:
        raise
    except ValueError:  # int() of thousands of digits; tomllib does not say where
        raise IntegerError("") from None
    return document


def read_toml(path: Path, largest_bytes: int) -> dict[str, Any]:
    """Read the tables of a TOML file. Raises ScenarioError."""
    try:
        return parse_toml(read_text(path, largest_bytes))
    except TomlError as error:
        raise ScenarioError(f"{path} {error}") from None
    except ValueError as error:
        raise ScenarioError(str(error)) from None


def check_integers(value: Any, key: str = "") -> None:
    """Raise IntegerError for the first whole number that TOML cannot represent."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            check_integers(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            check_integers(each, key)
    elif isinstance(value, int) and value.bit_length() >= INTEGER_BITS:
        raise IntegerError(key)

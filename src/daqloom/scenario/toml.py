"""Parsing of untrusted TOML: text that would take too much time or memory is rejected first."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.files import read_text

DEEPEST_KEY = 16
"""Maximum parts of a dotted key or of a table's header. Known keys have at most four."""
INTEGER_BITS = 64
"""Maximum bits of whole numbers in TOML. Python cannot print a number of more than 4300 digits."""

# Strings (also quoted parts of keys) and comments. Possessive quantifiers read each character once,
# also in an unterminated string.
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
    """Error for text that cannot be parsed; the message continues a sentence on the file."""


class IntegerError(TomlError):
    """Error for a whole number of more than 64 bits as the value of `key`."""

    def __init__(self, key: str) -> None:
        super().__init__(f"gives {key[:80] or 'a key'} a whole number of more than 64 bits")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text. Raises TomlError, also for long dotted keys, because time and memory of
    `tomllib` grow with the square of their number of parts."""
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
    except ValueError:  # int() of thousands of digits; position unknown
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

"""Parser for InfluxDB's line protocol: `measurement,tag=value field=1i,other=2.5 time`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Backslashes are literal unless they precede a character that they escape.
_WORD = r"(?:[^,= \\]|\\[,= ]|\\(?![,= ]))+"
_TEXT = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf'(?:{_TEXT}|[^," ]+)'
_LINE = re.compile(
    rf"(?P<tags>(?:,{_WORD}={_WORD})*) +(?P<fields>{_WORD}={_VALUE}(?:,{_WORD}={_VALUE})*)"
    r"(?: +(?P<time>-?[0-9]{1,19}))? *"
)
_MEASUREMENT = re.compile(r"(?:[^, \\]|\\[, ]|\\(?![, ]))+")
_TAG = re.compile(rf",({_WORD})=({_WORD})")
_FIELD = re.compile(rf"({_WORD})=({_VALUE}),?")
_ESCAPED = re.compile(r"\\([,= ])")
_NUMBER = re.compile(
    r"([+-]?[0-9]{1,20})[iu]|[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True)
class Point:
    """Tags, numeric fields and time of one line."""

    tags: dict[str, str]
    fields: dict[str, float]
    time_ns: int
    """Nanoseconds since 1970."""


def points(lines: Iterable[str], measurement: str) -> list[Point]:
    """Return the points of a measurement from lines with times in nanoseconds (the default). Raises
    ValueError, with the line, for one that is malformed or has no time."""
    found = []
    for line in lines:
        line = line.lstrip(" ").rstrip("\r")
        name = _MEASUREMENT.match(line)
        if name is None or line.startswith("#") or _plain(name[0]) != measurement:
            continue
        match = _LINE.fullmatch(line, name.end())
        if match is None or match["time"] is None:
            raise ValueError(line)
        found.append(
            Point(
                {_plain(key): _plain(value) for key, value in _TAG.findall(match["tags"])},
                dict(_numbers(match["fields"])),
                int(match["time"]),
            )
        )
    return found


def _numbers(fields: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in _FIELD.findall(fields):
        if number := _NUMBER.fullmatch(value):
            found.append((_plain(key), int(number[1]) if number[1] else float(value)))
    return found


def _plain(word: str) -> str:
    return _ESCAPED.sub(r"\1", word)

"""Names and numbers in sentences for people."""

import re
from collections.abc import Iterable, Iterator, Sequence

from daqloom.base import lazy

with lazy.imports():
    import difflib

TIMES_S = {"d": 86_400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
"""Lengths of time units in seconds, the longest unit first."""


def plural(number: int, one: str, many: str = "") -> str:
    """Return number and noun: `1 cable`, `2,000 cables`, `3 switches`. `many`: irregular plural."""
    many = many or f"{one}{'es' if one.endswith('ch') else 's'}"
    return f"{number:,} {one if number == 1 else many}"


def join_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that an unknown one may mean: the only one that begins with it, or the
    most similar one; "" if there is none."""
    names = list(known)
    longer = [each for each in names if name and each.startswith(name)]
    if len(longer) == 1:
        return longer[0]
    close = difflib.get_close_matches(name[:200], longer or names, n=1) or longer
    return close[0] if close else ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message on an unknown name: a similar known name, or `otherwise`."""
    close = closest(name, known)
    return f'did you mean "{close}"?' if close else otherwise


def printable(text: str) -> str:
    """Return the text with control characters escaped, as in `\\x1b`, for output to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def reason_of(error: OSError) -> str:
    """Return the operating system's reason as the end of a sentence."""
    return (error.strerror or str(error)).lower()


def key_in_words(key: str) -> str:
    """`event.rate` → "event rate"."""
    return key.replace(".", " ").replace("_", " ")


def natural_key(name: str) -> tuple[str | int, ...]:
    """Return a sort key that compares digits by value, so that `leaf2` sorts before `leaf10`."""
    parts = re.split("([0-9]{1,18})", name)
    return tuple(int(part) if odd % 2 else part for odd, part in enumerate(parts))


def unit_of_time(value_s: float) -> tuple[float, str]:
    """Return the longest unit of `TIMES_S` that does not exceed a time: (seconds, name)."""
    name = next((name for name, length in TIMES_S.items() if value_s >= length), "s")
    return TIMES_S[name], name


def duration(value_s: float) -> str:
    """Return a readable duration, such as `12 s`, `3.5 min`, `2.1 h` or `4.2 d`."""
    if 0 < value_s < 1:
        return f"{1e3 * value_s:.3g} ms"
    length, name = unit_of_time(value_s)
    return f"{value_s / length:.3g} {name}"


def rows_of(table: str) -> Iterator[list[str]]:
    """Yield the cells between bars for each row of a text table; indented lines continue a row."""
    for row in re.split(r"\n(?=\S)", table.strip()):
        yield " ".join(row.split()).split(" | ")

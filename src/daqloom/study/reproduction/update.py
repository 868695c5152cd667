"""Stored values at the end of the file of a record."""

import re
from pathlib import Path

from daqloom.base.output import write_text
from daqloom.study.reproduction.record import Numbers, Values, load_record

_STORED = re.compile(r"^\[stored\.(full|quick)\]\n[^\[]*", re.MULTILINE)


def write(path: Path, values: Values, *, quick: bool) -> None:
    """Replace the stored values of a form by `values`. Raises OutputError, StudyError."""
    forms = dict(load_record(path).stored)  # another process may have written the other form
    forms["quick" if quick else "full"] = values
    text = _STORED.sub("", path.read_text()).rstrip() + "\n"
    tables = [_table(name, each) for name, each in forms.items() if each]
    write_text(path, "\n".join([text, *tables]))


def _table(name: str, stored: Values) -> str:
    lines = [f"[stored.{name}]"]
    for key in ("value", "low", "high"):
        if (numbers := getattr(stored, key)) is not None:
            lines.append(f"{key} = {_numbers(numbers)}")
    return "\n".join([*lines, f"seeds = {stored.seeds}"]) + "\n"


def _numbers(numbers: Numbers) -> str:
    if isinstance(numbers, dict):
        return "{ " + ", ".join(f'"{k}" = {v!r}' for k, v in numbers.items()) + " }"
    return repr(numbers)

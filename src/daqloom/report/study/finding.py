"""What a report concludes from a study's numbers: sentences, a figure, a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daqloom.report.figure import Figure

NOTHING = "–"


@dataclass(frozen=True, eq=False)
class Finding:
    """One section: a figure with what it shows. `name` is that of its files."""

    name: str
    heading: str
    sentences: tuple[str, ...]
    """The first one is the answer, the others are what its reader has to know."""
    figure: Figure
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def counted(reasons: dict[str, int]) -> str:
    """`{"saturated": 2, "never": 1}` → "2 saturated, 1 never"."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()) if count)

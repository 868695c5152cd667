"""What a damaged store has lost, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_TOLD = 3
_WAY_OUT = "to hear no more of it, delete the file: its other results are computed anew too"


@dataclass
class Damage:
    """One place of a segment that cannot be used.

    `results_lost` is the least number where nothing sound follows (`at_least`), and None where the
    file cannot be read at all.
    """

    path: Path
    offset: int  # B, from the start of the file
    results_lost: int | None
    reason: str
    at_least: bool = False


def sentence(path: Path, damages: Sequence[Damage]) -> str:
    """About all damage of one segment."""
    for each in damages:
        if each.results_lost is None:
            return (
                f"{path} cannot be read: {each.reason}; its results count as absent and are "
                "computed anew where a study needs them"
            )
    told = [f"at byte {each.offset}: {each.reason}" for each in damages[:_MOST_TOLD]]
    if rest := len(damages) - _MOST_TOLD:
        told += [f"and at {rest} more"] if rest > 0 else []
    where = f"{path} is damaged ({'; '.join(told)})"
    lost = sum(each.results_lost or 0 for each in damages)
    least = "at least " if any(each.at_least for each in damages) else ""
    if not lost:
        return f"{where}; no result is lost; {_WAY_OUT}"
    results = "1 result is" if lost == 1 else f"{lost} results are"
    return f"{where}; {least}{results} lost and computed anew where a study needs them; {_WAY_OUT}"

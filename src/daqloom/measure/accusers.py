"""Reachability reports of units, and which unit to exclude because of them."""

from __future__ import annotations

from collections.abc import Sequence

from daqloom.measure.unit_view import UnitView

Accusers = dict[int, set[int]]
"""For each unit that others cannot reach, the units that report so."""


def accusers_among(members: Sequence[UnitView]) -> Accusers:
    """Return the reachability reports of the members of an epoch."""
    numbers = {unit.number for unit in members}
    accusers: Accusers = {}
    for unit in members:
        for number in unit.pulse.suspects if unit.pulse else ():
            if number in numbers and number != unit.number:
                accusers.setdefault(number, set()).add(unit.number)
    return accusers


def convicted(number_of_accusers: int, others: int) -> bool:
    """Return whether the accused unit is unreachable. A single accuser, or a minority of the
    `others`, may be the unreachable one itself."""
    return number_of_accusers > 1 and 2 * number_of_accusers > others


def worst(accusers: Accusers) -> int:
    """Return the unit that most others cannot reach; of several such, the last."""
    return max(accusers, key=lambda number: (len(accusers[number]), number))

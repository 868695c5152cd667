"""Who cannot reach whom, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from daqloom.measure.unit_view import UnitView

Accusers = dict[int, set[int]]
"""Of each unit that somebody cannot reach, those who say so."""


def accusers_among(members: Sequence[UnitView]) -> Accusers:
    """What the members of an epoch have said of each other in it."""
    numbers = {unit.number for unit in members}
    accusers: Accusers = {}
    for unit in members:
        for number in unit.pulse.suspects if unit.pulse else ():
            if number in numbers and number != unit.number:
                accusers.setdefault(number, set()).add(unit.number)
    return accusers


def convicted(number_of_accusers: int, others: int) -> bool:
    """Whether it is the accused who is out of reach: a single accuser may be so itself, and so may
    be a minority of the `others`."""
    return number_of_accusers > 1 and 2 * number_of_accusers > others


def worst(accusers: Accusers) -> int:
    """The unit that most cannot reach; of several such, the last."""
    return max(accusers, key=lambda number: (len(accusers[number]), number))

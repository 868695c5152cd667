"""The conditions under which a closed form is valid."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a formula: a name, whether it holds, and a sentence with the two numbers."""

    name: str
    holds: bool
    sentence: str


def first_failing(conditions: Sequence[Condition]) -> Condition | None:
    """Return the first condition that does not hold; None if all do."""
    return next((condition for condition in conditions if not condition.holds), None)

"""How many of something, in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 cable`, `2 cables`; `many` where that is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"

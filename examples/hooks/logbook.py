"""A hook that writes a line into a logbook, here a text file."""

import os
from typing import Any


def write(transition: dict[str, Any]) -> None:
    """Add a line on a transition."""
    text = transition.get("text", f"{transition['members']} of {transition['units']} units")
    line = f"{transition['time']} run {transition['run_number']} {transition['transition']}: {text}"
    with open(os.environ.get("LOGBOOK", "logbook.txt"), "a", encoding="utf-8") as book:
        book.write(f"{line}\n")

"""Findings of checks of a machine."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """Finding of one check: its state, meaning and remedy."""

    check: str
    state: State
    """State; warn: event building is slower or less steady; fail: it is hardly possible."""
    means: str
    """One sentence: the fact and its consequence."""
    fix: str = ""
    """Remedy; empty if no remedy is needed."""
    host: str = ""
    """Name of the host; empty for this machine."""

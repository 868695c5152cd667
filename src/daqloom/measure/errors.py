"""The one error of a run that a person can do something about."""

from __future__ import annotations


class MeasureError(RuntimeError):
    """A run that could not be made, or that broke. The message is one sentence."""

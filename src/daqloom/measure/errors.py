"""The error of a run that its user can mend."""

from __future__ import annotations


class MeasureError(RuntimeError):
    """A run could not be started, or failed. The message is one sentence."""

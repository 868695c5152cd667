"""The error of a run that could not be started, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.results.result import Result


class MeasureError(RuntimeError):
    """Error of a run that could not start or failed; the message is one sentence. `result` is the
    partial result of the measurement, with `failure` set, or None if counting had not begun."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result

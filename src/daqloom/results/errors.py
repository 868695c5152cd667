"""The error of a run that could not be started, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.results.result import Result


class MeasureError(RuntimeError):
    """A run could not be started, or failed. The message is one sentence. `result` holds what a
    measurement had found by then, with `failure` set; None where it had not begun to count."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result

"""Registry of run numbers: a file with the last number, which several run controls may share."""

import fcntl
from pathlib import Path

from daqloom.base.output import write_text
from daqloom.base.words import reason_of
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import read_text

HIGHEST = 2**53
LARGEST_FILE_BYTES = 64


class RunNumbers:
    """Numbers in a file, with a lock file beside it. No number is given twice; a start that a hook
    blocks leaves its number out."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def take(self, given: int | None = None) -> int:
        """Return the next number, from 1 on, and record it; or record the number that a hook has
        given, below which later ones do not fall. Raises MeasureError."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._file.with_name(f"{self._file.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                last = self._last()
                number = last + 1 if given is None else given
                write_text(self._file, f"{max(last, number)}\n")
        except OSError as error:
            raise MeasureError(
                f"the run number cannot be recorded in {self._file}: {reason_of(error)}; give a "
                "folder that can be written"
            ) from None
        return number

    def _last(self) -> int:
        if not self._file.exists():
            return 0
        try:
            text = read_text(self._file, LARGEST_FILE_BYTES).strip()
        except ValueError:
            text = ""
        if not (text.isascii() and text.isdigit() and int(text) < HIGHEST):
            raise MeasureError(
                f"{self._file} holds no run number; write the last one into it, such as 0"
            )
        return int(text)

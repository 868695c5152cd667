"""A program of one's own that is told lines and answers with lines."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Self

from daqloom.results.errors import MeasureError


class Child:
    """The program; a context, at whose end its input ends and it is waited for. `what` it is for
    begins the sentence of a failure."""

    def __init__(self, command: Sequence[str], what: str) -> None:
        self._command, self._what = command, what
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for who has started it
        )
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def say(self, line: str) -> None:
        """Tell it a line. Raises MeasureError where it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def hear(self) -> str:
        """Return its next line. Raises MeasureError where it has ended."""
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise self._ended()
        return line.strip()

    def tell(self, what: Any) -> None:
        """Tell it a line of JSON. Raises MeasureError where it has ended."""
        self.say(json.dumps(what))

    def answer(self) -> Any:
        """Return what its next line says in JSON. Raises MeasureError where it has ended."""
        return json.loads(self.hear())

    def _ended(self) -> MeasureError:
        assert self._process.stderr is not None
        lines = self._process.stderr.read().strip().splitlines() or ["no reason given"]
        return MeasureError(f"{self._what}: {lines[-1][:300]}")

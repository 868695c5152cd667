"""Child process that is sent lines and answers with lines."""

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from select import select
from typing import Any, Self

from daqloom.results.errors import MeasureError


class Child:
    """The child process; a context, at whose end its input ends and its exit is awaited. `what`
    begins the message of a failure."""

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
            start_new_session=True,  # Ctrl-C is for the parent
        )
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):  # a line that a killed process has not read
                pipe.close()
        self._process.wait()

    def write_line(self, line: str) -> None:
        """Write a line to the process. Raises MeasureError if it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._exit_error() from None

    def read_line(self) -> str:
        """Return the next line that the process prints. Raises MeasureError if it has ended."""
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise self._exit_error()
        return line.strip()

    def send(self, what: Any) -> None:
        """Write a line of JSON. Raises MeasureError if the process has ended."""
        self.write_line(json.dumps(what))

    def answer(self, timeout_s: float | None = None) -> Any:
        """Return the value of the next JSON line. Raises MeasureError if the process has ended, or
        has written nothing within the timeout."""
        assert self._process.stdout is not None
        if timeout_s is not None and not select([self._process.stdout], [], [], timeout_s)[0]:
            raise MeasureError(f"{self._what}: no answer within {timeout_s:g} s")
        return json.loads(self.read_line())

    def check(self) -> None:
        """Raise MeasureError if the process has ended."""
        if self._process.poll() is not None:
            raise self._exit_error()

    def end_input(self) -> None:
        """End the input of the process, on which it ends."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # a line that a killed process has not read
            self._process.stdin.close()

    def end(self, timeout_s: float) -> None:
        """End the input, and kill the process if it has not ended within the timeout."""
        self.end_input()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process, even if it is stopped."""
        self._process.kill()

    def _exit_error(self) -> MeasureError:
        assert self._process.stderr is not None
        lines = self._process.stderr.read().strip().splitlines() or ["no reason given"]
        return MeasureError(f"{self._what}: {lines[-1][:300]}")

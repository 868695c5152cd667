"""Programs run with limits on time and output, without leaving processes behind."""

import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

PIECE_BYTES = 1 << 16
MARK = "DAQLOOM_PROGRAM"
"""Environment variable by which the processes of a program are found."""
PATIENCE_S = 5.0
"""Time limit for a killed process to end (s)."""
SWEEPS = 8
"""Limit on repeated searches for further processes of a session."""


class TooLongError(Exception):
    """Raised if the output of a program exceeds its limit."""


def run_program(
    command: Sequence[str], text: bytes, timeout_s: float, most_bytes: int
) -> subprocess.CompletedProcess[bytes]:
    """Run a program with `text` on its standard input until it ends; then end its descendants, even
    if they hold pipes open. Daemons stay, such as the master connection of ssh. Raises
    TimeoutError, TooLongError for more than `most_bytes` on an output (both also end daemons), and
    OSError if the program does not start."""
    ends_s, mark = time.monotonic() + timeout_s, secrets.token_hex(8)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        env={**os.environ, MARK: mark},
    )
    is_whole = False
    try:
        outputs = _exchange(process, text, ends_s, most_bytes)
        is_whole = True
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        end_session(process, "" if is_whole else mark)
    return subprocess.CompletedProcess(command, process.returncode, *outputs)


def end_session(process: "subprocess.Popen[bytes]", mark: str = "") -> None:
    """Kill the leader of a session, its descendants, its session, and all processes with `mark` in
    their environment."""
    for _ in range(SWEEPS):
        # The leader is reaped last, because until then no other session can get its number.
        found = _session(process.pid, f"{MARK}={mark}" if mark else "")
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found - {process.pid}:
            break
    with suppress(subprocess.TimeoutExpired):  # processes of other users cannot be killed
        process.wait(PATIENCE_S)


def _session(leader: int, mark: str) -> set[int]:
    """Return the session's live processes, those with the mark, and the leader's descendants."""
    parents: dict[int, int] = {}
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            state, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
            pid = int(path.parent.name)
            parents[pid] = int(parent)
            is_of_it = state not in "ZX" and leader in (int(session), pid)
            if is_of_it or (mark and mark in _environment(path.parent)):
                found.add(pid)
    below = {leader}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return found | (below & parents.keys() - {leader})


def _environment(process: Path) -> list[str]:
    return (process / "environ").read_bytes().decode(errors="replace").split("\0")


def _exchange(
    process: "subprocess.Popen[bytes]", text: bytes, ends_s: float, most_bytes: int
) -> tuple[bytes, bytes]:
    """Write the input of a process, and return its standard output and error after its end."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = {process.stdout: bytearray(), process.stderr: bytearray()}
    left = memoryview(text)
    for pipe in (process.stdin, *outputs):
        os.set_blocking(pipe.fileno(), False)
    exited = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as waiting:
            waiting.register(exited, selectors.EVENT_READ)
            waiting.register(process.stdin, selectors.EVENT_WRITE)
            for pipe in outputs:
                waiting.register(pipe, selectors.EVENT_READ)
            is_running = True
            while is_running:
                if (left_s := ends_s - time.monotonic()) <= 0:
                    raise TimeoutError
                ready = {key.fileobj for key, _ in waiting.select(left_s)}
                is_running = exited not in ready
                if process.stdin in ready and not (left := _written(process.stdin, left)):
                    waiting.unregister(process.stdin)
                    process.stdin.close()
                # After the end, remaining output is read, even from pipes that are still open.
                for pipe, printed in outputs.items():
                    is_due = pipe in (ready if is_running else waiting.get_map())
                    if is_due and _is_drained(pipe, printed, ends_s, most_bytes):
                        waiting.unregister(pipe)
    finally:
        os.close(exited)
    return bytes(outputs[process.stdout]), bytes(outputs[process.stderr])


def _written(pipe: IO[bytes], left: memoryview) -> memoryview:
    """Write a piece of `left`; return the rest, which is empty if the reader closed the pipe."""
    try:
        return left[os.write(pipe.fileno(), left[:PIECE_BYTES]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


def _is_drained(pipe: IO[bytes], printed: bytearray, ends_s: float, most_bytes: int) -> bool:
    """Read what is available; return whether the pipe ended. Raises TooLongError, TimeoutError."""
    while piece := pipe.read(PIECE_BYTES):
        printed += piece
        if len(printed) > most_bytes:
            raise TooLongError
        if time.monotonic() > ends_s:
            raise TimeoutError
    return piece is not None

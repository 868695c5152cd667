"""Programs whose output and time are bounded while they run, and of which nothing is left."""

import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PIECE_BYTES = 1 << 16
MARK = "DAQLOOM_PROGRAM"
"""Environment variable by which the processes are known that a program has started."""
PATIENCE_S = 5.0
"""How long a killed process may take to end (s)."""
SWEEPS = 8
"""Searches for processes that a session has started meanwhile."""


class TooLongError(Exception):
    """A program prints more than is read."""


@dataclass(frozen=True)
class Done:
    """A program that has ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run_program(command: Sequence[str], text: bytes, timeout_s: float, most_bytes: int) -> Done:
    """Run a program with `text` on its standard input until it ends, and end all that it has
    started, whether or not its pipes are open still; only what it has made a daemon stays, such as
    the master connection of ssh. Raises TimeoutError, TooLongError for more than `most_bytes` on an
    output, when daemons are ended too, and OSError where it does not start."""
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
    return Done(process.returncode, *outputs)


def end_session(process: "subprocess.Popen[bytes]", mark: str = "") -> None:
    """Kill a process that leads a session, with its descendants, all of that session and, where it
    is given, all that have the mark in their environment."""
    for _ in range(SWEEPS):
        # The leader is not waited for before: until then its number is that of no other session.
        found = _session(process.pid, f"{MARK}={mark}" if mark else "")
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found - {process.pid}:
            break
    with suppress(subprocess.TimeoutExpired):  # of another user, which cannot be killed
        process.wait(PATIENCE_S)


def _session(leader: int, mark: str) -> set[int]:
    """Return the processes of a session that live, those with the mark, and the descendants of the
    leader."""
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
    """Return what a process prints on its standard output and error until it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = {process.stdout: bytearray(), process.stderr: bytearray()}
    left = memoryview(text)
    exited = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as waiting:
            for pipe in pipes:
                os.set_blocking(pipe.fileno(), False)
                waiting.register(pipe, selectors.EVENT_READ)
            os.set_blocking(process.stdin.fileno(), False)
            waiting.register(process.stdin, selectors.EVENT_WRITE)
            waiting.register(exited, selectors.EVENT_READ)
            is_running = True
            while is_running:
                left_s = ends_s - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError
                ready = {key.fileobj for key, _ in waiting.select(left_s)}
                is_running = exited not in ready
                if process.stdin in ready:
                    with suppress(BlockingIOError):
                        try:
                            left = left[os.write(process.stdin.fileno(), left[:PIECE_BYTES]) :]
                        except BrokenPipeError:
                            left = left[:0]
                        if not left:
                            waiting.unregister(process.stdin)
                            process.stdin.close()
                for pipe, printed in pipes.items():
                    # The rest in a pipe is read at the end, whether or not the pipe is open still.
                    while pipe in waiting.get_map() and (pipe in ready or not is_running):
                        piece = pipe.read(PIECE_BYTES)
                        if piece is None:
                            break
                        printed += piece
                        if len(printed) > most_bytes:
                            raise TooLongError
                        if not piece:
                            waiting.unregister(pipe)
                        elif time.monotonic() > ends_s:
                            raise TimeoutError
    finally:
        os.close(exited)
    return bytes(pipes[process.stdout]), bytes(pipes[process.stderr])

"""Child processes that carry out tasks; see `daqloom.tasks.program`."""

import asyncio
import json
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AT_ONCE = 2
"""Child processes that run at a time."""
MOST_WAITING = 100
"""Requests that wait for a child process; more are refused."""
MOST_TASKS = 500
"""Tasks of a child process before a new one replaces it."""

Answer = dict[str, Any]
OnProgress = Callable[[float], Awaitable[None]]


class TaskError(Exception):
    """Failure of a task: one sentence."""


class Children:
    """Child processes of a `program` for tasks: `AT_ONCE` at a time. Each task has `cpu_s` of CPU
    time, access to the files below `folder`, and an answer of at most `most_bytes`. With `keeps` a
    child process waits for further tasks; else it ends with its task. A cancelled task ends its
    process."""

    def __init__(
        self,
        program: str,
        folder: Path | None,
        cpu_s: int,
        most_bytes: int = 1 << 20,
        *,
        keeps: bool = False,
    ) -> None:
        self._program, self._folder = program, folder
        self._cpu_s, self._most_bytes, self._keeps = cpu_s, most_bytes, keeps
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._idle: list[_Child] = []

    async def run(
        self, name: str, arguments: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> Answer:
        """Return the answer of a task. Raises TaskError."""
        request = {"task": name, "arguments": dict(arguments), "cpu_s": self._cpu_s}
        request["folder"] = [str(self._folder)] if self._folder else []
        request["most_bytes"] = self._most_bytes
        if self._waiting >= MOST_WAITING:
            raise TaskError(f"{MOST_WAITING} requests are waiting already; repeat this one later")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._answer(json.dumps(request).encode() + b"\n", on_progress)
        finally:
            self._free.release()

    async def close(self) -> None:
        """End the waiting child processes."""
        while self._idle:
            await self._idle.pop().end()

    async def _answer(self, request: bytes, on_progress: OnProgress | None) -> Answer:
        child = self._idle.pop() if self._idle else await self._start()
        is_kept = False
        try:
            async for record in child.records(request, more=self._keeps):
                if "progress" in record:
                    if on_progress:
                        await on_progress(record["progress"])
                    continue
                is_kept = self._keeps and child.tasks < MOST_TASKS
                if "failure" in record:
                    raise TaskError(record["failure"])
                return dict(record["answer"])
            raise TaskError(self._failure(await child.process.wait(), await child.errors))
        finally:
            if is_kept:
                self._idle.append(child)
            else:
                await child.end()

    async def _start(self) -> "_Child":
        # -P: the folder is the child's working folder, and modules in it must not be imported.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", self._program),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self._folder or "/",
            limit=2 * self._most_bytes,
        )
        assert process.stderr
        return _Child(process, asyncio.ensure_future(process.stderr.read()))

    def _failure(self, code: int, errors: bytes) -> str:
        """Return the sentence for a child that ended without an answer."""
        if code == -signal.SIGXCPU:
            return (
                f"the task needs more than the limit of {self._cpu_s} s of CPU time; give a "
                "shorter run.duration or a smaller system, or use the command line"
            )
        logging.getLogger(__name__).error(
            "a task ended with code %d: %s", code, errors.decode(errors="replace")
        )
        return "the task failed unexpectedly; the log of the server has the reason"


@dataclass
class _Child:
    process: Process
    errors: asyncio.Future[bytes]
    """Standard error until its end."""
    tasks: int = 0

    async def records(self, request: bytes, *, more: bool) -> AsyncIterator[Answer]:
        """Send a task, the last one unless `more`, and yield the records of its answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.tasks += 1
        with suppress(ConnectionError):  # of a child that has ended, as its code shows
            self.process.stdin.write(request)
            await self.process.stdin.drain()
        if not more:
            self.process.stdin.close()
        async for line in self.process.stdout:
            yield json.loads(line)

    async def end(self) -> None:
        """Kill the process, and wait for its end."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await asyncio.gather(self.process.wait(), self.errors)

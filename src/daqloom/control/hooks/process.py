"""The process of a hook, with limits on its time and output."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from daqloom.base.words import duration, printable, reason_of
from daqloom.control.hooks.document import Hook

LARGEST_OUTPUT_BYTES = 1 << 16
"""Limit on the output of a hook (bytes)."""
LONGEST_ANSWER = 300
ORPHAN_S = 1.0
"""Time after its limit at which a hook ends without the run control (s)."""
Values = Mapping[str, str | int]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a hook."""

    length_s: float
    answer: str = ""
    """Last line of its output."""
    failure: str = ""
    """Reason of its failure; empty after success."""


class _OutputError(Exception):
    """The hook has printed too much."""


async def run_hook(hook: Hook, values: Values, folder: Path) -> Outcome:
    """Run a hook in a folder; the values are its standard input, as one JSON object, and in its
    environment. The hook and its child processes have ended afterwards, also if cancelled."""
    begin_s = time.monotonic()
    answer = failure = ""
    named = {f"DAQLOOM_HOOK_{name.upper()}": str(value) for name, value in values.items()}
    limit = ("timeout", "--signal=KILL", f"{hook.timeout + ORPHAN_S}")
    # A cancellation during the start would end the process alone, without its children.
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *limit,
            *hook.words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **named},
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(start)
    except OSError as error:
        return Outcome(time.monotonic() - begin_s, failure=f"it did not start: {reason_of(error)}")
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await start)
        raise
    try:
        async with asyncio.timeout(hook.timeout):
            answer, code = await _answer(process, json.dumps(values).encode() + b"\n")
        if code:
            failure = f"exit code {code}{': ' if answer else ''}{answer}"
    except TimeoutError:
        failure = f"no answer within {duration(hook.timeout)}"
    except _OutputError:
        failure = f"more than {LARGEST_OUTPUT_BYTES >> 10} KiB of output"
    finally:
        await _end(process)
    return Outcome(time.monotonic() - begin_s, answer, failure)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a hook with its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
    await process.wait()


async def _answer(process: asyncio.subprocess.Process, body: bytes) -> tuple[str, int]:
    """Return the last line of output and the exit code. Raises _OutputError."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):  # it need not read
        process.stdin.write(body)
        await process.stdin.drain()
        process.stdin.close()
    output = b""
    while part := await process.stdout.read(LARGEST_OUTPUT_BYTES):
        output += part
        if len(output) > LARGEST_OUTPUT_BYTES:
            raise _OutputError
    lines = output.decode(errors="replace").strip().splitlines() or [""]
    return printable(lines[-1].strip())[:LONGEST_ANSWER], await process.wait()

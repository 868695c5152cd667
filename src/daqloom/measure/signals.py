"""Handling of Ctrl-C and SIGTERM in an asyncio loop."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class SignalledError(Exception):
    """Ctrl-C or SIGTERM arrived while the loop was running."""


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """Yield the event that Ctrl-C or SIGTERM sets, in a loop of the main thread.

    A second signal has Python's default effect, which cancels the loop's task."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            with suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def first() -> None:
        stop.set()
        restore()

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # another thread than the main one
                handler = signal.getsignal(number)
                loop.add_signal_handler(number, first)
                before[number] = handler
        yield stop
    finally:
        restore()


async def unless_stopped(waiting: Any, stop: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait for `waiting`, at most `timeout_s`. Raises SignalledError if `stop` is set first."""
    task = asyncio.ensure_future(waiting)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        elif stopped.done():
            raise SignalledError
    finally:
        task.cancel()
        stopped.cancel()

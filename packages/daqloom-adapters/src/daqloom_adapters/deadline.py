"""Deadlines for requests to a device."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
STRIDE = 256
"""Number of items between two readings of the clock."""


class Deadline:
    """Deadline by which a whole answer must be received and parsed."""

    def __init__(self, timeout_s: float) -> None:
        self._ends_s = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Time that remains (s). Raises TimeoutError when none remains."""
        if (left_s := self._ends_s - time.monotonic()) <= 0:
            raise TimeoutError
        return left_s

    def until_deadline(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. Raises TimeoutError at the deadline."""
        for number, item in enumerate(items):
            if number % STRIDE == 0:
                _ = self.left_s
            yield item


def run_within(timeout_s: float, work: Callable[[], T]) -> T:
    """Return the result of `work`, or raise its exception. Raises TimeoutError after the timeout;
    `work` then continues in a daemon thread."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result(timeout_s)

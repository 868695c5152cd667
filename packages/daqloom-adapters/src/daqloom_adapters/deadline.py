"""Work that ends in time, whatever the other side does."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
STRIDE = 256
"""Items between two looks at the clock."""


class Deadline:
    """The time until which all of an answer has to be read and understood."""

    def __init__(self, timeout_s: float) -> None:
        self._ends_s = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """The time that is left (s). Raises TimeoutError where none is."""
        if (left_s := self._ends_s - time.monotonic()) <= 0:
            raise TimeoutError
        return left_s

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items while there is time. Raises TimeoutError."""
        for number, item in enumerate(items):
            if number % STRIDE == 0:
                _ = self.left_s
            yield item


def within(timeout_s: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises. Raises TimeoutError where it takes
    longer; then it goes on in its thread, which keeps no process alive."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result(timeout_s)

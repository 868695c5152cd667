"""Work that ends in time, whatever the other side does."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


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

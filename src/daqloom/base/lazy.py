"""Deferred imports: a module is imported at its first use, so that commands start quickly.

>>> with imports():
...     import decimal
...     from xml import dom
>>> decimal.Decimal("0.5")
Decimal('0.5')
"""

import builtins
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, get_ident
from typing import Any

from daqloom.base import extras

_IMPORT = builtins.__import__
_LOCK = Lock()
_DEFERRING: set[int] = set()
"""Threads inside an `imports` block; imports in other threads are not deferred."""


class _Placeholder:
    """Placeholder for a module, which is imported on the first access to an attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if get_ident() in _DEFERRING:  # `from package import module` in a block
            return _Placeholder(f"{self._name}.{attribute}")
        try:
            return getattr(import_module(self._name), attribute)
        except ModuleNotFoundError as error:
            raise extras.error_for(error) from None


def _defer(name: str, *scope: Any) -> Any:
    return _Placeholder(name) if get_ident() in _DEFERRING else _IMPORT(name, *scope)


@contextmanager
def imports() -> Iterator[None]:
    """Defer imports in a `with` block: `import module` and `from package import module`. A missing
    module raises ModuleNotFoundError at its first use, with the extra that installs the module."""
    with _LOCK:
        _DEFERRING.add(get_ident())
        builtins.__import__ = _defer  # type: ignore[assignment]
    try:
        yield
    finally:
        with _LOCK:
            _DEFERRING.discard(get_ident())
            if not _DEFERRING:
                builtins.__import__ = _IMPORT


def names_of(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` that imports names on demand, as name → module."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return find

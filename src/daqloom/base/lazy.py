"""Deferred imports: a module is read at its first use, so that commands start quickly.

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
from typing import Any


class _Deferred:
    """Stands for a module, and imports it when an attribute is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if builtins.__import__ is _deferred:  # `from package import module` in a block
            return _Deferred(f"{self._name}.{attribute}")
        return getattr(import_module(self._name), attribute)


def _deferred(name: str, *_scope: object) -> Any:
    return _Deferred(name)


@contextmanager
def imports() -> Iterator[None]:
    """Defer the imports in this block: `import module`, `from package import module`. A module that
    is not there is an ImportError at its first use."""
    real = builtins.__import__
    builtins.__import__ = _deferred  # type: ignore[assignment]
    try:
        yield
    finally:
        builtins.__import__ = real


def names_of(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return `__getattr__` of a package that offers names of its modules: name → module."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return find

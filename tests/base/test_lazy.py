"""Deferred imports: nothing is read in the block, everything at the first use."""

import builtins
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from daqloom.base import lazy

with lazy.imports():
    import colorsys
    import colorsys as colours
    from xml.dom import minidom

    import no_such_module  # type: ignore[import-not-found]


def test_modules_are_read_at_their_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.delitem(sys.modules, "xml.dom.minidom", raising=False)
    assert (colorsys.ONE_THIRD, colours.ONE_SIXTH) == (1 / 3, 1 / 6)
    assert minidom.Document.__name__ == "Document"
    assert {"colorsys", "xml.dom.minidom"} <= sys.modules.keys()
    import colorsys as real

    monkeypatch.setattr(real, "ONE_THIRD", 3)
    assert colorsys.ONE_THIRD == 3
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        no_such_module.name  # noqa: B018


def test_imports_after_a_failed_block_or_of_another_thread_are_not_deferred() -> None:
    real = builtins.__import__
    with pytest.raises(ZeroDivisionError), lazy.imports():
        1 / 0  # noqa: B018
    assert builtins.__import__ is real
    with lazy.imports(), ThreadPoolExecutor(1) as other:
        found = other.submit(lambda: __import__("threading")).result()
    assert found is sys.modules["threading"]

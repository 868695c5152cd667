"""Errors of `daqloom switch` without DPDK."""

import importlib.util
import sys

import pytest

import daqloom.softswitch
from daqloom.cli.switch import _needs_dpdk
from daqloom.results.errors import MeasureError


def test_a_build_without_dpdk_or_its_library_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MeasureError, match="daqloom was built without DPDK; install it"):
        _needs_dpdk()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.delattr(daqloom.softswitch, "program", raising=False)
    monkeypatch.setitem(sys.modules, "daqloom.softswitch.program", None)
    with pytest.raises(MeasureError, match="DPDK's library cannot be loaded: import of"):
        _needs_dpdk()

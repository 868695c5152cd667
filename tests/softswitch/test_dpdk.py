"""The switch without DPDK: one sentence with the package to install."""

import sys

import pytest

from daqloom.results.errors import MeasureError
from daqloom.softswitch import dpdk


def test_a_build_without_dpdk_or_its_library_is_named(monkeypatch):
    monkeypatch.setattr(dpdk, "find_spec", lambda name: None)
    with pytest.raises(MeasureError, match=r"built without DPDK; install .*libdpdk-dev"):
        dpdk.require()
    monkeypatch.setattr(dpdk, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "daqloom._switch", None)
    with pytest.raises(MeasureError, match="DPDK's library cannot be loaded: import of"):
        dpdk.require()

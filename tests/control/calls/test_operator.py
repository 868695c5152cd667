"""Requests of an operator that have no answer: the reason without the layers of gRPC."""

import socket

import pytest

from daqloom.control.calls import operator
from daqloom.control.calls.registry import Listener
from daqloom.results.errors import MeasureError


@pytest.mark.process
def test_a_port_without_a_listener_refuses_the_connection(monkeypatch):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        monkeypatch.setattr(operator, "find_run", lambda *_: Listener(address, bytes(16)))
        with pytest.raises(MeasureError) as failed:
            operator.ask(b"", None, patience_s=5.0)
    assert str(failed.value) == (
        f"the run control at {address} does not answer: connection refused; if it has "
        "certificates, give their folder with --certificates"
    )

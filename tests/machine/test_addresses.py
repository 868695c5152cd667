"""Addresses of this machine, for the other units of a run."""

import pytest

from daqloom.deployment.scenarios import load
from daqloom.machine.addresses import own_address
from daqloom.results.errors import MeasureError
from daqloom.scenario import ScenarioError

pytestmark = pytest.mark.process


def test_loopback_is_the_address_of_units_beside_the_run_control_alone() -> None:
    assert own_address("127.0.0.1:4000") == "127.0.0.1"
    assert own_address("localhost:4000") in ("127.0.0.1", "::1")
    with pytest.raises(MeasureError, match="is a loopback address on this machine"):
        own_address("127.0.0.1:4000", for_others=True)
    assert not load("laptop").measure.spans_machines


def test_a_network_selects_the_address() -> None:
    assert own_address("127.0.0.1:4000", "127.0.0.0/8").startswith("127.")
    with pytest.raises(MeasureError, match=r"192\.0\.3\.0/24"):  # reserved
        own_address("127.0.0.1:4000", "192.0.3.0/24")
    assert load("laptop", ["measure.network=10.1.0.0/16"]).measure.network == "10.1.0.0/16"
    with pytest.raises(ScenarioError, match="is not a network"):
        load("laptop", ["measure.network=ib0"])


def test_writes_over_tcp_have_checksums_unless_all_units_are_on_this_machine() -> None:
    site = [
        *("measure.transport=tcp", "measure.launch=ssh", "measure.hosts=['a', 'b']"),
        *("measure.bind=10.0.0.1", "measure.certificates=/somewhere"),
    ]
    assert load("laptop", site).measure.has_checksums
    assert not load("laptop", [*site, "measure.checksums=never"]).measure.has_checksums
    here = load("laptop", ["measure.transport=tcp"]).measure
    assert not here.has_checksums
    assert load("laptop", ["measure.checksums=always"]).measure.has_checksums

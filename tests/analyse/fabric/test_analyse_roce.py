"""Closed forms of RDMA over Ethernet: against sums by hand and against the simulation."""

import pytest

from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from support.small_fabrics import daqpipe, small

ROCE = {
    "network__technology": "ethernet",
    "network__shape": "fat-tree",
    "network__routing": "d-mod-k",
    "network__links__rate": "200 Gb/s",
    "network__mtu": "4200 B",
    "transport__kind": "rdma",
    "transport__mtu": "4 KiB",
    "builders__folded": True,
}
SHIFT = ROCE | {"building__protocol": "shift"}


def shift(**changes: object) -> Scenario:
    return small(**(SHIFT | changes))


def value(result: Result, name: str) -> float:
    found = result.metric(name)
    assert found is not None
    return found


def test_a_link_carries_its_rate_less_headers() -> None:
    """Four packets of 4096 B, each with Ethernet 14, IPv4 20, UDP 8, transport header 12, check 4,
    FCS 4, preamble 8 and gap 12; the write's 16 + 4 B once. Nothing waits for credits."""
    link = methods.analyse(shift(event__fragment_size="4 B")).analysis["link"]
    payload, packets = 4 * 4096, 4
    on_wire = payload + packets * (14 + 20 + 8 + 12 + 4 + 4 + 8 + 12) + 16 + 4
    expected = pytest.approx(200e9 * payload / on_wire, rel=1e-9)
    assert link["headers_bps"] == link["payload_bps"] == expected
    assert "credits_bps" not in link


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"building__barrier": "dissemination"},
        {"building__barrier": "centralised"},
        {"event__packing": 400},
        {"transport__mtu": "1 KiB"},
        {"hosts__message_cost": "500 ns"},
    ],
    ids=str,
)
def test_linear_shifting_agrees_with_its_simulation(changes: dict[str, object]) -> None:
    scenario = shift(**changes)
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    written = value(simulated, "written_event_rate_hz")
    assert written == pytest.approx(value(formula, "event_rate_hz"), rel=0.02)
    assert simulated.metric("packets_dropped") == 0


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_daqpipe_stays_below_its_bound(mode: str) -> None:
    scenario = daqpipe(**(ROCE | {"building__mode": mode}))
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    share = value(simulated, "written_event_rate_hz") / value(formula, "event_rate_hz")
    assert 0.5 < share < 1.02


def test_ecmp_has_no_closed_form_and_the_warning_names_a_remedy() -> None:
    (warning,) = methods.analyse(shift(network__routing="ecmp")).warnings
    assert 'network.routing = "d-mod-k"' in warning

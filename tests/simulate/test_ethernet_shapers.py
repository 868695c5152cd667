"""Shapers as links, and packet latency of hosts, in simulation: known answers."""

import pytest

pytest.importorskip("daqloom._engine")

from daqloom.deployment.scenarios import load, override
from daqloom.scenario import ScenarioError
from daqloom.study.methods import methods

DELAY_S = 3e-6
EVENT = {
    "readout.units": 1,
    "builders.units": 1,
    "event.size": "10 kB",
    "event.rate": "10 Hz",
    "event.arrivals": "deterministic",
    "building.event_manager": "ideal",
    "network.links.source.delay": "3 us",
    "network.links.uplink.delay": "3 us",
    "network.links.access.delay": "3 us",
    "run.duration": "2 s",
    "run.warmup": "0.5 s",
}
"""One event at a time, of seven packets that are sent at once."""
WIDE = {f"network.links.{link}.bucket": "20 kB" for link in ("source", "uplink", "access")}
"""Buckets for all packets of an event."""


def latency_s(**keys: object) -> float:
    changes = EVENT | {key.replace("__", "."): value for key, value in keys.items()}
    result = methods.simulate(override(load("lab-rack"), changes))
    found = result.metric("collection_latency_s.mean")
    assert isinstance(found, float)
    return found


def wide(**keys: object) -> float:
    return latency_s(**{key.replace(".", "__"): value for key, value in WIDE.items()}, **keys)


def test_through_wide_buckets_an_event_takes_the_delays_alone() -> None:
    """A request crosses three links, and so do the packets of its answer."""
    assert wide() == pytest.approx(6 * DELAY_S, rel=1e-3)
    # 70 us for the request, and as much for its answer, whose packets come at once.
    late = wide(hosts__packet_latency__mean="70 us")
    assert late - wide() == pytest.approx(140e-6, rel=1e-3)
    with pytest.raises(ScenarioError, match=r"source\.0\.up has a shaper's bucket"):
        wide(hosts__scheduling="strict")


def test_a_wire_takes_its_time_for_each_bit() -> None:
    """The request crosses three wires, the first packet of its answer two, and then all seven are
    back to back on the third. A packet is 90 B more on the wire than its data."""
    source, uplink, access = 40e6, 480e6, 20e6
    request, full, all_seven = 8 * (48 + 90), 8 * 1538, 8 * (10_000 + 7 * 90)
    there_s = request / access + request / uplink + request / source
    back_s = full / source + full / uplink + all_seven / access
    assert latency_s() == pytest.approx(there_s + back_s + 6 * DELAY_S, rel=1e-3)

"""The share of packets dropped, by counts made by hand and in a run that drops."""

import pytest

pytest.importorskip("daqloom._engine")

from daqloom.deployment.scenarios import load, override
from daqloom.simulate.ethernet import _drop_fraction
from daqloom.study.methods import methods


def test_the_links_from_a_switch_count_forwarded_packets() -> None:
    frames = {
        "source.0.up": 1000,  # from a host
        "source.0.down": 20,
        "uplink.0.down": 900,
        "uplink.0.up": 30,
        "access.0.down": 810,
        "access.0.up": 3000,  # from a host
    }
    from_hosts = {"source.0.up", "access.0.up"}
    # Forwarded: 20 + 900 + 30 + 810 = 1760; with 240 dropped, 2000 arrived.
    assert _drop_fraction(240, frames, from_hosts) == {"drop_fraction": 0.12}
    assert _drop_fraction(0, frames, from_hosts) == {"drop_fraction": 0.0}


def test_without_packets_there_is_no_share() -> None:
    frames = {"access.0.up": 5, "access.0.down": 0}
    from_hosts = {"access.0.up"}
    assert _drop_fraction(0, frames, from_hosts) == {}
    assert _drop_fraction(3, frames, from_hosts) == {"drop_fraction": 1.0}


def test_a_run_agrees_with_its_own_counts() -> None:
    """Every frame of a host crosses two switches unless it is dropped at one. Without a warm-up,
    arrivals at the outputs of switches are packet hops less those of the hosts' links: about two
    thirds, as acknowledgements and data take one link from a host and two from switches."""
    tor = {"network.switch.tor.model": "drop-tail", "network.switch.tor.queue_packets": 8}
    times = {"run.duration": "200 ms", "run.warmup": "0 s"}
    result = methods.simulate(override(load("small-rack"), tor | times))
    dropped, hops = result.metric("packets_dropped"), result.metric("packet_hops")
    fraction = result.metric("drop_fraction")
    assert hops is not None
    assert dropped > 0
    # sent = hosts' hops, forwarded = 2 · sent - dropped (only the last switch drops): hops =
    # 3 · sent - dropped, arrived = forwarded + dropped = 2 · (hops + dropped) / 3, up to the frames
    # on their way at the end.
    assert fraction == pytest.approx(dropped / (2 * (hops + dropped) / 3), rel=0.01)

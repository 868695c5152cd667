"""Classes of frames and links that change, as the engine takes them from Python."""

import numpy as np
import pytest

from daqloom import _engine
from daqloom._engine import EthernetConfig, LinkChange, LinkChangeKind, Scheduling

RATE_BPS = 100 * 10**9
TO_HOST_2 = 5
"""The link from the switch: cable c leads from host c to it, by links 2c and, back, 2c + 1."""


def star(switch: _engine.SwitchConfig | None = None, *changes: LinkChange) -> EthernetConfig:
    """Three hosts around one switch."""
    hosts = 3
    return EthernetConfig(
        hosts=hosts,
        switch_ports=[hosts],
        cables=[((host, 1), (hosts, host + 1), RATE_BPS, 100e-9) for host in range(hosts)],
        forwarding=np.arange(1, hosts + 1, dtype=np.uint16),
        switches=[switch or _engine.SwitchConfig()],
        changes=list(changes),
    )


def weighted(weights: list[int]) -> _engine.SwitchConfig:
    schedule = _engine.Schedule(scheduling=Scheduling.weighted, weights=weights)
    return _engine.SwitchConfig(schedule=schedule)


def run(network: EthernetConfig, second_level: int = 1) -> _engine.FlowsReport:
    """Hosts 0 and 1 send to host 2 as fast as they can, on two service levels."""
    flows = [
        _engine.Flow(
            name=f"from {host}",
            sources=[host],
            destination=2,
            service_level=level,
            bytes=1 << 16,
            outstanding=8,
        )
        for host, level in ((0, 0), (1, second_level))
    ]
    config = _engine.SystemConfig(
        network=network,
        transport=_engine.RdmaConfig(),
        flow_hosts=list(range(network.hosts)),
        flows=flows,
        duration_s=1e-3,
        warmup_s=0.2e-3,
    )
    system = _engine.FlowSystem(config)
    system.run()
    assert system.broken_conservation() == ""
    return system.report()


def test_two_classes_share_an_output_by_their_weights_and_one_is_not_reported() -> None:
    network = star(weighted([3, 0, 0, 0, 1, 0, 0, 0]))
    network.service_classes = [0, 4]
    report = run(network)
    first, second = (flow.bytes for flow in report.flows)
    assert first / second == pytest.approx(3, rel=0.03)
    classes = report.classes
    to_host = classes.link == TO_HOST_2
    assert classes.traffic_class[to_host].tolist() == [0, 4]
    assert classes.drops.sum() == 0
    wire = classes.wire_bytes[to_host]
    assert wire[0] / wire[1] == pytest.approx(3, rel=0.02)
    assert wire.sum() == pytest.approx(RATE_BPS / 8 * 0.8e-3, rel=0.002)
    report = run(star(weighted([3, 0, 0, 0, 1, 0, 0, 0])))
    assert len(report.classes.link) == 0
    first, second = (flow.bytes for flow in report.flows)
    assert first == pytest.approx(second, rel=0.05)


def test_a_link_that_changes_carries_the_bytes_of_its_rates() -> None:
    half = LinkChange(at_s=0.6e-3, link=TO_HOST_2, what=LinkChangeKind.rate, rate_bps=RATE_BPS // 2)
    links = run(star(None, half)).links
    assert links.wire_bytes[TO_HOST_2] == pytest.approx(0.75 * RATE_BPS / 8 * 0.8e-3, rel=0.002)
    assert links.rate_bps[TO_HOST_2] == RATE_BPS // 2
    down = LinkChange(at_s=0.6e-3, link=TO_HOST_2, what=LinkChangeKind.down)
    report = run(star(None, down))
    assert report.cut >= 1
    half = pytest.approx(0.5 * RATE_BPS / 8 * 0.8e-3, rel=0.01)
    assert report.links.wire_bytes[TO_HOST_2] == half


def test_impossible_configurations_are_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="the greatest weight of a class is 0"):
        run(star(weighted([0] * 8)))
    down = LinkChange(at_s=0, link=0, what=LinkChangeKind.down, drops=True)
    with pytest.raises(ValueError, match="in a change to down"):
        run(star(None, down))

"""A switch's counters as Prometheus gets them."""

import pytest

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

from daqloom.softswitch.counters import SwitchCollector
from daqloom.softswitch.status import OvsdbStatus
from support.softswitch.status import status


def test_limits_of_ports_and_the_database_are_shown():
    plain = status()
    frames = plain.ports[0].frames | {"bytes": 5, "storm": 7, "not_learned": 9}
    ports = [port.model_copy(update={"frames": frames, "addresses": 3}) for port in plain.ports]
    database = OvsdbStatus(state="failed", failure="the server has not answered")
    update = {"ports": tuple(ports), "rings": (), "loop": {"behind": 0}, "ovsdb": database}
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in SwitchCollector(lambda: plain.model_copy(update=update)).collect()
        for sample in metric.samples
    }
    assert found["daqloom_switch_dropped_frames_total", "a", "storm"] == 7
    assert found["daqloom_switch_unlearned_frames_total", "a"] == 9
    assert found["daqloom_switch_addresses", "c"] == 3
    assert found[("daqloom_switch_ovsdb_up",)] == 0

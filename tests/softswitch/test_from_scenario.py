"""The software switch of a scenario: its ports, rings and paces as a file."""

import pytest

import daqloom
from daqloom.deployment.scenarios import load
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.from_scenario import document_of
from daqloom.softswitch.load import build
from daqloom.softswitch.sizes import buffers_of
from support.command import output


def test_all_to_all_has_a_ring_for_each_collector():
    document = document_of(load("lossless-switch-all-to-all"), "10.0.0.0/16")
    assert list(document["ports"]) == [f"leaf{n:02}" for n in range(12)]
    assert len(document["rings"]) == 144
    assert document["pace_counts"] == "ip"
    # Thirteen hosts at each leaf; those of the builder units have rings, behind their own leaf.
    by_port = [ring["port"] for ring in document["rings"].values()]
    assert all(by_port.count(f"leaf{n:02}") == 12 for n in range(12))
    addresses = [ring["to"] for ring in document["rings"].values()]
    assert len(set(addresses)) == 144
    devices = {f"ports.leaf{n:02}.device": f"net_null{n}" for n in range(12)}
    switch = build(document, devices)
    assert {ring.rate for ring in switch.rings.values()} == {780_000_000}
    assert {ring.packets for ring in switch.rings.values()} == {4096}


def test_a_rack_has_a_port_for_its_uplink_and_each_builder():
    rack = load(
        "small-rack",
        {
            "network.switch.tor.model": "software",
            "network.switch.tor.ecn_threshold": "50 kB",
            "network.links.uplink.count": 2,
            "network.switch.tor.pause_at": 300,
        },
    )
    document = document_of(rack, "10.1.0.0/24")
    builders = rack.builders.units
    ports = [f"builder-{n}" for n in range(builders)]
    assert list(document["ports"]) == ["core-1", "core-2", *ports]
    first = document["rings"]["builder-0"]
    assert first["port"] == "builder-0"
    assert first["to"] == f"10.1.0.{rack.readout.units + 1}"
    assert first["ecn_threshold"] == "50 kB"
    assert first["pause_at"] == 300
    assert "rate" not in first
    with pytest.raises(ScenarioError, match=r"ports\.core-1 = .* lacks the key device"):
        build(document)


def test_pauses_move_a_burst_that_the_ring_cannot_hold_into_the_switch_before_it():
    """9790 packets for a ring of 5000, which pauses its uplink above 1000: nothing is lost, the
    pace of the ring tells how long it takes, as with a ring for all, and the core holds the rest.
    """
    tor = "network.switch.tor"
    one_core = {f"{tor}.cores": 1, "run.duration": "1.5 s", "run.warmup": "0.5 s"}
    ample = daqloom.load("lossless-switch-all-to-one", one_core).simulate()
    small = {f"{tor}.queue_packets": 5000, f"{tor}.pause_at": 1000}
    pausing = daqloom.load("lossless-switch-all-to-one", one_core | small).simulate()
    assert ample.metric("packets_dropped") == pausing.metric("packets_dropped") == 0
    latency = "collection_latency_s.mean"
    assert pausing.metric(latency) == pytest.approx(ample.metric(latency), rel=1e-3)
    assert pausing.metric("pause_frames") > 0
    assert ample.metric("pause_frames") is None
    held = "buffer_peak_bytes"
    assert pausing.metric(f"{held}.tor") < 1.1 * 1000 * 1518
    assert pausing.metric(f"{held}.core") > 8 * 1000 * 1518


def test_scenarios_without_usable_software_switch_or_addresses_are_refused() -> None:
    with pytest.raises(ScenarioError, match="pause_at = 5 needs one core"):
        load(
            "lossless-switch-all-to-one",
            {"network.switch.tor.pause_at": 5, "network.switch.tor.cores": 2},
        )
    for options in ((), ("--switch", "tor")):
        told = output("switch", "check", "lossless-switch-all-to-one", *options, code=2)
        assert "whose hosts need addresses; give --hosts" in told


def test_it_stands_in_for_a_switch_of_shared_memory():
    rack = load("small-rack", {"network.switch.tor.model": "qfx5120-48y"})
    document = document_of(rack, "10.1.0.0/24", "tor")
    assert "rings" not in document
    devices = {f"ports.{name}.device": f"net_null{n}" for n, name in enumerate(document["ports"])}
    switch = build(document, devices)
    memory = switch.shared_memory
    assert (memory.buffer, memory.dedicated, memory.ports) == (32_000_000, 5_000_000, 56)
    assert (memory.cell_size, memory.cell_metadata, memory.alpha) == (256, 64, 1.0)
    # Packets find a buffer up to the number of cells.
    assert all(port.packets == 125_000 for port in switch.ports.values())
    assert buffers_of(switch) > 125_000


@pytest.mark.parametrize(
    ("name", "changes", "hosts", "switch", "said"),
    [
        ("small-rack", {}, "10.0.0.0/16", "", "has no software switch; give"),
        ("lhcb-500", {}, "10.0.0.0/16", "", "has no software switches; they forward Ethernet"),
        ("lossless-switch-all-to-one", {}, "10.0.0.0/30", "", "too few addresses for 111 hosts"),
        ("lossless-switch-all-to-one", {}, "ten", "", "is no network"),
        ("lossless-switch-all-to-one", {}, "10.0.0.0/16", "core", "no software switch core"),
        (
            "lossless-switch-all-to-one",
            {"network.switch.core.model": "software"},
            "10.0.0.0/16",
            "",
            "has 2 software switches, core, tor; choose one with --switch",
        ),
    ],
)
def test_scenarios_without_such_a_switch_are_refused(name, changes, hosts, switch, said):
    with pytest.raises(ScenarioError) as refused:
        document_of(load(name, changes), hosts, switch)
    assert said in str(refused.value)

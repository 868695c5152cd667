"""Plan of a laboratory, by known answers; no network is made."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load
from daqloom.lab import kernel
from daqloom.lab.balance import Device, balance, devices, socket_drops
from daqloom.lab.counting import Port, request
from daqloom.lab.laboratory import LabCount, PortCount
from daqloom.lab.network import Queue, lab_network
from daqloom.lab.result import lab_metrics
from daqloom.lab.software import RingCount, document
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.softswitch.load import load as load_switch
from daqloom.topology.fabric.links import LinkName

FRAME = 1518
"""A full frame in a buffer: an IP packet of 1500 B, Ethernet header, check sequence."""
SEEN = 1514
"""Bytes of it that the kernel counts."""
WIRE_BITS = 8 * 1538
"""Bits of it on the wire, with preamble and gap."""


def rack(**changes: object) -> Scenario:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return load("lab-rack", keys)


def small() -> Scenario:
    return rack(readout__units=2, builders__units=1)


def test_a_rack_has_its_hosts_switches_cables_and_ways() -> None:
    network = lab_network(small())
    assert [host.name for host in network.hosts] == ["readout.0", "readout.1", "builder.0"]
    assert [host.address for host in network.hosts] == ["10.113.0.1", "10.113.0.2", "10.113.0.3"]
    assert (network.switches, network.levels) == (("core", "tor"), ("core", "tor"))
    assert [cable.hosts for cable in network.cables] == [(0, -1), (1, -1), (-1, -1), (-1, 2)]
    rates = {queue.link.name: queue.rate_bps for queue in network.queues}
    assert rates == {
        "source.0.down": 40_000_000,
        "source.1.down": 40_000_000,
        "uplink.0.down": 480_000_000,
        "uplink.0.up": 480_000_000,
        "access.0.down": 20_000_000,
    }
    of = {queue.link.name: queue.device for queue in network.queues}
    core = (of["source.0.down"], of["source.1.down"], of["uplink.0.down"])
    tor = (of["uplink.0.up"], of["uplink.0.up"], of["access.0.down"])
    assert network.towards == (core, tor)


def test_storage_units_have_hosts_behind_those_of_other_units() -> None:
    network = lab_network(rack(readout__units=2, builders__units=1, storage__units=2))
    assert [host.name for host in network.hosts][3:] == ["storage.0", "storage.1"]
    assert {cable.hosts for cable in network.cables} >= {(3, -1), (4, -1)}
    assert all(towards[3] and towards[4] for towards in network.towards)


def test_every_host_of_a_tree_has_one_way_without_a_loop() -> None:
    tree = {"shape": "fat-tree", "leaves": 2, "spines": 2, "hosts_per_leaf": 3}
    keys = {f"network.{key}": value for key, value in tree.items()}
    network = lab_network(load("lab-shift", keys | {"network.links.rate": "40 Mb/s"}))
    leads_to = {}
    for cable in network.cables:
        ends = ((cable.a, cable.b, cable.hosts[1]), (cable.b, cable.a, cable.hosts[0]))
        for near, far, host in ends:
            leads_to[near.device] = ("host", host) if host >= 0 else ("switch", far.switch)
    for start in range(len(network.switches)):
        for host in range(len(network.hosts)):
            at, hops = ("switch", start), 0
            while at[0] == "switch":
                at, hops = leads_to[network.towards[at[1]][host]], hops + 1
                assert hops <= 3
            assert at == ("host", host)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"network__links__access__delay": "1 ms"}, "access.0.down has 1 ms"),
        ({"network__switch__tor__model": "acx7100-48l"}, 'switch.tor.model = "acx7100-48l"'),
        ({"network__switch__tor__ecn_threshold": "10 kB"}, "no switch with ecn_threshold"),
        ({"readout__units": 250}, "more than 250"),
    ],
)
def test_an_impossible_network_is_refused_with_a_remedy(changes, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence.replace(".", r"\.")):
        lab_network(rack(**changes))


def test_only_an_ethernet_that_carries_tcp_is_made() -> None:
    with pytest.raises(ScenarioError, match="makes Ethernets that carry TCP"):
        lab_network(load("laptop"))


def test_hosts_have_the_tcp_of_the_scenario() -> None:
    static = lab_network(small())
    assert "initcwnd 45 " in static.route  # 64 KiB are 45 segments of 1448 B
    assert static.settings["ipv4/tcp_slow_start_after_idle"] == "0"
    cubic = {"congestion": "cubic", "initial_window": 7, "rto_min": "100 ms"}
    cubic |= {"rack": False, "tail_loss_probe": False}
    network = lab_network(rack(**{f"transport__{key}": value for key, value in cubic.items()}))
    assert "initcwnd 7 " in network.route
    assert "rto_min 100ms" in network.route
    names = ("slow_start_after_idle", "recovery", "early_retrans")
    assert [network.settings[f"ipv4/tcp_{name}"] for name in names] == ["1", "0", "0"]


def switch_of(network, folder: Path):
    """The file of the network's software switch, read back."""
    (rings,) = network.software
    (folder / "switch.toml").write_text(document(network, rings))
    return load_switch(folder / "switch.toml")


def port(rate_bps: int = 20_000_000, **limits: int) -> Queue:
    return Queue("s0p1", LinkName("access.0.down", "access.down"), rate_bps, 0, **limits)


def test_a_bucket_holds_two_frames_or_the_lateness_of_timers_or_less() -> None:
    assert kernel.burst_frames(port(), 1500) == 2
    assert kernel.bucket_s(port(), 1500) == pytest.approx(2 * WIRE_BITS / 20e6)
    # 50 us at 10 Gb/s are 500 000 bits: 40.6 frames.
    assert kernel.burst_frames(port(10_000_000_000), 1500) == 41
    network = lab_network(rack(measure__bucket_frames=1.25))
    assert {queue.bucket_frames for queue in network.queues} == {1.25}
    narrow = replace(port(packets=10), bucket_frames=1.25)
    bucket, fifo = kernel.queues([narrow], 1500)
    assert f" burst {5 * WIRE_BITS // 32} " in bucket
    assert fifo.endswith("pfifo limit 9")  # and one on the wire


def test_a_shaper_has_the_bucket_of_the_scenario_which_lets_full_frames_pass() -> None:
    network = lab_network(rack(network__links__access__bucket="1945 B"))
    buckets = {queue.link.kind.partition(".")[0]: queue.bucket_bytes for queue in network.queues}
    assert buckets == {"source": 0, "uplink": 0, "access": 1945}
    shaper = port(packets=10, bucket_bytes=1945)
    bucket, fifo = kernel.queues([shaper], 1500)
    assert " burst 1945 " in bucket
    assert fifo.endswith("pfifo limit 10")
    assert kernel.ahead_frames(shaper, 1500) == 0
    assert kernel.bucket_s(shaper, 1500) == pytest.approx(8 * 1945 / 20e6)
    with pytest.raises(ScenarioError, match=r"bucket of 1537 B; expected .* 1538 B on the wire"):
        list(kernel.queues([port(bucket_bytes=1537)], 1500))
    with pytest.raises(ScenarioError, match=r"access\.0\.down has a buffer of 2 full frames"):
        kernel.fifo(port(packets=2), 1500)


@pytest.mark.parametrize("frames", [3, 10, 80, 10_000])
def test_bucket_and_fifo_hold_the_buffer_of_the_port(frames: int) -> None:
    """With 2 frames in the bucket, the FIFO holds exactly the others."""
    kind, _, limit = kernel.fifo(port(buffer_bytes=frames * FRAME), 1500).split()
    assert kind == "bfifo"
    assert (frames - 2) * SEEN <= int(limit) < (frames - 1) * SEEN
    assert kernel.fifo(port(packets=frames), 1500) == f"pfifo limit {frames - 2}"
    # The smaller one decides.
    both = port(buffer_bytes=frames * FRAME, packets=frames + 1)
    assert kernel.fifo(both, 1500).startswith("bfifo")


def reply(sent: tuple[int, int], queue: tuple[int, int, int]) -> bytes:
    """Answer of the kernel: bytes and packets sent; packets and bytes that wait, and drops."""

    def attribute(kind: int, data: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(data), kind) + data

    counted = attribute(1, struct.pack("=QI", *sent))
    counted += attribute(3, struct.pack("=IIIII", *queue, 0, 0))
    body = struct.pack("=BxxxiIII", 0, 7, 0x100000, 0, 0) + attribute(1, b"bfifo\0\0\0")
    body += attribute(7, counted)
    return struct.pack("=IHHII", 16 + len(body), 36, 0, 0, 0) + body


def watched_port(ahead_bytes: int = 2 * FRAME) -> Port:
    """A port of 10 full frames a second, polled ten times a second."""
    return Port("access.0.down", 0, 4, ahead_bytes, 10 * FRAME, FRAME, request(7, 16))


def test_a_port_counts_kernel_counters_its_ring_and_unseen_bytes() -> None:
    port = watched_port()
    port.update(reply((3 * SEEN, 3), (5, 5 * SEEN, 2)), 0.1)
    assert (port.sent_bytes, port.sent, port.dropped, port.waiting) == (3 * SEEN, 3, 2, 5)
    assert port.held_bytes == port.peak_bytes == 7 * FRAME
    port.update(reply((8 * SEEN, 8), (0, 0, 2)), 0.5)
    assert (port.held_bytes, port.peak_bytes) == (0, 7 * FRAME)
    error = struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -2) + bytes(16)
    with pytest.raises(FileNotFoundError):
        watched_port().update(error, 0.1)
    count = replace(ZERO, sent=7, dropped=1, waiting=2)
    whole = count.with_ring(RingCount(held=3, dropped=4, peak_bytes=5))
    assert (whole.sent, whole.dropped, whole.waiting, whole.peak_bytes) == (7, 5, 5, 5)


def test_a_port_counts_its_content_at_its_full_rate() -> None:
    """20 frames wait; in one second a port of 10 frames a second sends 10, a late one 4."""
    for sent in (10, 4):
        port = watched_port(ahead_bytes=0)
        port.update(reply((0, 0), (20, 20 * SEEN, 0)), 0.0)
        assert port.punctual_bytes == 20 * FRAME
        port.update(reply((sent * SEEN, sent), (20 - sent, (20 - sent) * SEEN, 0)), 1.0)
        assert port.held_bytes == (20 - sent) * FRAME
        assert port.punctual_bytes == 10 * FRAME
    port.update(reply((20 * SEEN, 20), (0, 0, 0)), 0.1)
    assert port.punctual_bytes == 0
    # Frames between two polls may have come last.
    port.update(reply((20 * SEEN, 20), (1, SEEN, 0)), 0.5)
    assert port.punctual_bytes == FRAME


ZERO = PortCount(sent=0, sent_bytes=0, dropped=0, waiting=0, peak_bytes=0)


def counted(**of_ports: PortCount) -> LabCount:
    names = [queue.link.name for queue in lab_network(small()).queues]
    ports = {name: of_ports.get(name.replace(".", "_"), ZERO) for name in names}
    return LabCount(ports, (0, 7 * FRAME), watched_s=2.0, late_s=0.1, punctual_peaks=(0, 0))


def test_metrics_are_differences_of_counts_in_which_no_packet_is_missing() -> None:
    before = PortCount(sent=100, sent_bytes=100 * SEEN, dropped=4, waiting=0, peak_bytes=0)
    after = PortCount(sent=1_100, sent_bytes=1_100 * SEEN, dropped=7, waiting=0, peak_bytes=0)
    begin, end = counted(access_0_down=before), counted(access_0_down=after)
    found = lab_metrics(lab_network(small()), begin, end)
    assert found["buffer_peak_bytes"] == {"core": 0, "tor": 7 * FRAME}
    assert (found["packets_dropped"], found["drops_by_port"]) == (3, {"access.0.down": 3})
    assert found["drop_fraction"] == pytest.approx(3 / 1003)
    share = 1000 * WIRE_BITS / (20e6 * 2)
    assert found["link_utilisation"]["access.0.down"] == pytest.approx(share)
    assert found["link_utilisation"]["access.down"] == pytest.approx(share)
    # A host sends 10 packets to the builder: the switch drops 3, its last cable 2.
    network = lab_network(small())
    none = Device(0, 0, 0)
    switches = {queue.device: none for queue in network.queues}
    of = {queue.link.name: queue.device for queue in network.queues}
    switches[of["source.0.down"]] = Device(received=10, refused=0, sent=0)
    switches[of["uplink.0.down"]] = Device(received=0, refused=0, sent=10)
    switches[of["uplink.0.up"]] = Device(received=10, refused=0, sent=0)
    switches[of["access.0.down"]] = Device(received=0, refused=0, sent=7)
    hosts = [Device(0, 0, 10), none, Device(received=5, refused=2, sent=0)]

    def with_drops(drops: int) -> LabCount:
        access = replace(ZERO, sent=7, dropped=drops)
        return counted(uplink_0_down=replace(ZERO, sent=10), access_0_down=access)

    kept = balance(network, with_drops(3), switches, hosts, 1)
    assert (kept.in_hosts, kept.unaccounted) == ({"cable": 2, "socket": 1}, 0)
    hosts[2] = Device(received=4, refused=2, sent=0)
    assert balance(network, with_drops(3), switches, hosts, 0).unaccounted == 1
    hosts[2] = Device(received=5, refused=2, sent=0)
    assert balance(network, with_drops(2), switches, hosts, 0).unaccounted == 1


def test_the_kernels_tables_are_read() -> None:
    table = "Inter-|   Receive\n face |bytes\n  eth0: 10 2 0 1 0 0 0 0 20 3 0 0 0 0 0 0\n"
    assert devices(table) == {"eth0": Device(received=2, refused=1, sent=3)}
    text = "TcpExt: A TCPBacklogDrop TCPRcvQDrop\nTcpExt: 5 2 1\nIpExt: B\nIpExt: 4\n"
    assert socket_drops(text) == 3
    assert socket_drops("") == 0


SOFTWARE = {
    "network__switch__tor__model": "software",
    "network__switch__tor__queue_packets": 50,
    "network__switch__tor__pace": "19 Mb/s",
}


def test_software_switches_have_a_file_ports_and_shared_memory(tmp_path: Path) -> None:
    network = lab_network(rack(readout__units=2, builders__units=1, **SOFTWARE))
    (rings,) = network.software
    assert (rings.switch, rings.hosts) == (1, (2,))
    switch = switch_of(network, tmp_path)
    of = {queue.link.name: queue.device for queue in network.queues}
    assert set(switch.ports) == {of["uplink.0.up"], of["access.0.down"]}
    (ring,) = switch.rings.values()
    assert (ring.port, ring.to, ring.packets) == (of["access.0.down"], "10.113.0.3/32", 50)
    assert ring.rate == 19_000_000
    lines = [*kernel.cables(network, [1, 2, 3]), *kernel.forwarding(network)]
    assert not any("master s1 up" in line for line in lines)
    assert not any(f"dev {of['access.0.down']}" in line for line in lines)
    assert any("master s0 up" in line for line in lines)
    shared = {"buffer": "200 kB", "dedicated": "20 kB", "alpha": 0.5, "cell_size": "256 B"}
    keys = {f"network__switch__tor__{key}": value for key, value in shared.items()}
    keys["network__switch__tor__model"] = "shared-memory"
    network = lab_network(rack(readout__units=2, builders__units=2, **keys))
    (rings,) = network.software
    assert rings.hosts == (0, 1, 2, 3)
    switch = switch_of(network, tmp_path)
    memory = switch.shared_memory
    assert (memory.buffer, memory.dedicated, memory.alpha) == (200_000, 20_000, 0.5)
    assert (memory.cell_size, memory.cell_metadata) == (256, 64)
    # Rings have the pace of their links, so that packets wait in the memory.
    assert [ring.rate for ring in switch.rings.values()] == [480_000_000] * 2 + [20_000_000] * 2

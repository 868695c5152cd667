"""The program of the software switch: frames from captures, through rings, into captures."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.softswitch.switches import (
    DAQLOOM,
    RUNS,
    frame,
    read_pcap,
    switch,
    two_ports,
    write_pcap,
)

pytestmark = pytest.mark.process

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

RING = '[rings.dcm]\nport = "down"\nto = "10.0.0.1"\n'
SLOW = '[rings.slow]\nport = "down"\nto = "10.0.0.1"\nrate = "1 Mb/s"\n'


def marks(path: Path) -> list[int]:
    return [each[-1] for each in read_pcap(path)]


def test_frames_pass_in_order_and_are_all_counted(tmp_path):
    frames = [frame(mark=mark) for mark in range(50)]
    with switch(two_ports(tmp_path, frames, RING)) as running:
        running.until(50)
        last = running.last()
    assert marks(tmp_path / "down.pcap") == list(range(50))
    assert read_pcap(tmp_path / "up.pcap") == []
    assert last["stopping"]
    up, down = last["ports"]
    assert up["frames"]["packets"] == 50
    assert up["frames"]["bytes"] == 5000
    assert down["device_counts"]["sent"] == 50
    of_port, dcm = last["rings"][1:]
    assert (of_port["name"], of_port["counts"]["packets"]) == ("port down", 0)
    assert (dcm["name"], dcm["counts"]["packets"], dcm["packets"]) == ("dcm", 50, 0)
    assert last["memory"]["free_buffers"] == 8191


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core")
def test_two_cores_are_one_switch(tmp_path):
    first, second = sorted(os.sched_getaffinity(0))[:2]
    frames = [frame(mark=mark) for mark in range(100)]
    file = two_ports(tmp_path, frames, RING)
    with switch(file, "--set", f"runs.cores=[{first},{second}]") as running:
        running.until(100)
        assert running.command("set", "rings.dcm.packets=7").returncode == 0
        last = running.last()
    # In by the port of one core, out by that of the other one, in order.
    assert marks(tmp_path / "down.pcap") == list(range(100))
    assert last["ports"][0]["frames"]["packets"] == 100
    assert last["rings"][2]["counts"]["packets"] == 100
    assert last["rings"][2]["most_packets"] == 7
    assert last["loop"]["behind"] == 0
    assert (last["loop"]["received"], last["loop"]["sent"]) == (100, 100)
    assert last["addresses"]["known"] == 1
    assert last["memory"]["free_buffers"] == 8191


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core")
def test_receive_queues_of_two_cores_lose_nothing_that_is_not_counted(tmp_path):
    # A device that receives without end, from whose two queues each core takes.
    first, second = sorted(os.sched_getaffinity(0))[:2]
    path = tmp_path / "switch.toml"
    path.write_text(f"""
{RUNS}
cores = [{first}, {second}]
receive_queues = 2
[ports.in]
device = "net_null0,size=64"
[ports.out]
device = "net_null1,no-rx=1"
[rings.all]
port = "out"
ingress = "in"
""")
    with switch(path) as running:
        running.until(100_000)
        last = running.last()
    counts = last["rings"][2]["counts"]
    frames = last["ports"][0]["frames"]
    assert frames["packets"] == last["loop"]["received"]
    assert frames["packets"] == counts["packets"] + counts["drops"] + last["loop"]["behind"]
    assert frames["full"] == counts["drops"]
    assert last["loop"]["sent"] == counts["packets"] == last["ports"][1]["device_counts"]["sent"]
    assert last["memory"]["free_buffers"] == 8191


def test_a_full_ring_drops_and_others_do_not(tmp_path):
    # A pace of a frame in 1.24 s: those that come at once meet a ring with room for ten.
    frames = [frame(mark=mark, size=1500) for mark in range(40)]
    frames += [frame("10.0.0.2", mark=100 + mark) for mark in range(40)]
    with switch(two_ports(tmp_path, frames, SLOW + "packets = 10\n")) as running:
        running.until(80)
        last = running.last()
    slow = last["rings"][2]
    assert slow["counts"]["packets"] + slow["counts"]["drops"] == 40
    # The ring sends at once what its pace allows, and then holds ten.
    assert slow["counts"]["peak_packets"] == 10
    assert 10 <= slow["counts"]["packets"] <= 12
    assert last["ports"][0]["frames"]["full"] == slow["counts"]["drops"]
    came = marks(tmp_path / "down.pcap")
    assert [mark for mark in came if mark >= 100] == list(range(100, 140))
    assert len(came) == 40 + slow["counts"]["packets"]


def test_shared_memory_drops_the_frames_that_a_hardware_switch_would(tmp_path):
    # 100 cells of 256 B, of which 20 are dedicated to two ports. A frame of 1000 B, with 64 B of
    # metadata, takes five; a port gets its 10 and, with alpha 1, half of the pool of 80: 10 frames.
    memory = '[shared_memory]\nbuffer = "25.6 kB"\ndedicated = "5.12 kB"\n'
    frames = [frame(mark=mark, size=1000) for mark in range(40)]
    with switch(two_ports(tmp_path, frames, memory + SLOW)) as running:
        running.until(40)
        status = running.status()
        running.command("stop", "--drain", "0 s")
    slow = status["rings"][2]
    # At most two have left at their pace, of a frame in 8 ms, before all had come.
    assert 10 <= slow["counts"]["packets"] <= 12
    assert slow["counts"]["drops"] == 40 - slow["counts"]["packets"]
    assert status["ports"][0]["frames"]["full"] == slow["counts"]["drops"]


def test_it_changes_while_it_runs(tmp_path):
    with switch(two_ports(tmp_path, [frame()], RING)) as running:
        assert running.command("set", "rings.dcm.rate=0.5 Gb/s", "rings.dcm.packets=7").stdout == ""
        rule = ("rules.x.protocol=udp", "rules.x.to_port=123", "rules.x.action=drop")
        assert running.command("set", *rule).returncode == 0
        dcm = running.status()["rings"][2]
        assert (dcm["rate_bps"], dcm["most_packets"]) == (500_000_000, 7)
        refused = running.command("set", "rings.dcm.rate=2 Gb/s", "classes=2")
        assert refused.returncode == 2
        assert "classes cannot change while the switch runs" in refused.stderr
        assert running.status()["rings"][2]["rate_bps"] == 500_000_000
        unknown = running.command("set", "rings.dcm.speed=3")
        assert "unknown key" in unknown.stderr
        assert running.command("remove", "rules.x").returncode == 0
        assert "rules.x is not given" in running.command("remove", "rules.x").stderr
        added = running.command("set", "rings.slow.port=up", "rings.slow.to=10.0.0.9")
        assert "rings.slow.port cannot change while the switch runs" in added.stderr


def test_of_a_change_that_does_not_fit_nothing_stays(tmp_path):
    with switch(two_ports(tmp_path, [], RING + "[addresses]\nmost = 1\n")) as running:
        first = ("addresses.fixed.a.address=02:00:00:00:00:07", "addresses.fixed.a.port=up")
        assert running.command("set", *first).returncode == 0
        more = ("addresses.fixed.b.address=02:00:00:00:00:08", "addresses.fixed.b.port=down")
        refused = running.command("set", "rings.dcm.rate=2 Gb/s", *more)
        assert refused.returncode == 2
        assert "addresses.fixed.b: the table of addresses is full" in refused.stderr
        status = running.status()
        assert status["rings"][2]["rate_bps"] == 0
        assert (status["addresses"]["known"], status["addresses"]["fixed"]) == (1, 1)


def test_a_mirrored_ring_is_copied_to_a_capture(tmp_path):
    frames = [frame(mark=mark) for mark in range(20)]
    frames += [frame("10.0.0.2", mark=99, destination=1)]
    path = two_ports(tmp_path, frames, RING + "mirrored = true\n")
    write_pcap(tmp_path / "none2.pcap", [])
    capture = f"rx_pcap={tmp_path}/none2.pcap,tx_pcap={tmp_path}/mirror.pcap"
    options = ("--set", f"ports.capture.device=net_pcap2,{capture}", "--set", "mirror=capture")
    with switch(path, *options) as running:
        running.until(21)
        last = running.last()
    assert marks(tmp_path / "down.pcap") == list(range(20))
    assert marks(tmp_path / "mirror.pcap") == list(range(20))
    assert last["ports"][0]["frames"]["mirrored"] == 20


def test_a_signal_drains_it(tmp_path):
    frames = [frame(mark=mark, size=1500) for mark in range(100)]
    options = ("--set", "rings.slow.rate=10 Mb/s")
    with switch(two_ports(tmp_path, frames, SLOW), *options) as running:
        running.until(100)
        running.process.send_signal(signal.SIGTERM)
        running.result()
    assert marks(tmp_path / "down.pcap") == list(range(100))


def test_a_killed_one_leaves_nothing_in_the_way(tmp_path):
    path = two_ports(tmp_path, [frame(mark=1)])
    for _ in range(2):
        with switch(path) as running:
            running.until(1)
            running.process.kill()
            running.process.communicate()
    with switch(path) as running:
        running.until(1)
        assert running.last()["ports"][0]["frames"]["flooded"] == 1


def refusal(path: Path, *options: str) -> list[str]:
    """The lines that a switch writes which cannot run."""
    command = [*DAQLOOM, "switch", "run", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_a_device_that_is_absent_is_named_in_one_sentence(tmp_path):
    path = tmp_path / "switch.toml"
    path.write_text(f'{RUNS}\n[ports.a]\ndevice = "net_pcap0,rx_pcap={tmp_path}/absent.pcap"\n')
    assert refusal(path)[-1].startswith("daqloom: ")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("control.listen=0.0.0.0:0", "control.listen = 0.0.0.0 is reachable from other machines"),
        ('control.openflow=["punix:/nonexistent/x"]', "cannot listen at /nonexistent/x"),
        ("control.prometheus=192.0.2.1:99", "cannot serve counters for Prometheus"),
        ("control.ovsdb=unix:/nonexistent/x", "no ovsdb-server answers there"),
    ],
)
def test_a_service_that_cannot_start_is_reported_in_one_line(tmp_path, setting, reason):
    [line] = refusal(two_ports(tmp_path, []), "--set", setting)
    assert reason in line


def test_two_switches_hand_frames_over_through_shared_memory(tmp_path: Path) -> None:
    write_pcap(tmp_path / "in.pcap", [frame(mark=number) for number in range(100)])
    write_pcap(tmp_path / "none.pcap", [])
    memif = f"socket={tmp_path}/memif.sock,socket-abstract=no"

    def file_of(name: str, source: str, role: str) -> Path:
        path = tmp_path / f"{name}.toml"
        captured = f"rx_pcap={tmp_path}/{source}.pcap,tx_pcap={tmp_path}/{name}.pcap"
        path.write_text(
            f'{RUNS}\n[ports.hosts]\ndevice = "net_pcap0,{captured}"\n'
            f'[ports.peer]\ndevice = "net_memif0,role={role},{memif}"\n'
        )
        return path

    with (
        switch(file_of("near", "none", "server")) as near,
        switch(file_of("far", "in", "client")) as far,
    ):
        assert near.until(100)["loop"]["received"] == 100
        assert far.last()["loop"]["sent"] == 100
        near.last()
    assert marks(tmp_path / "near.pcap") == list(range(100))
    assert read_pcap(tmp_path / "far.pcap") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_wait_for_a_ring_that_hardly_drains(tmp_path, number):
    frames = [frame(mark=mark, size=1500) for mark in range(250)] * 4  # 12 s
    with switch(two_ports(tmp_path, frames, SLOW)) as running:
        running.until(1000)
        running.process.send_signal(number)
        assert running.result()["rings"][2]["packets"] > 0


def test_a_port_floods_and_learns_as_much_as_it_may(tmp_path):
    frames = [frame(source=source, destination=9) for source in range(100)]
    limits = ("--set", "ports.up.floods=20", "--set", "ports.up.addresses=5")
    with switch(two_ports(tmp_path, frames), *limits) as running:
        running.until(100)
        assert running.command("set", "ports.up.floods=0", "ports.up.addresses=9").returncode == 0
        refused = running.command("set", "ports.up.packets=9")
        assert "ports cannot change while the switch runs" in refused.stderr
        port = running.last()["ports"][0]
    assert port["frames"]["storm"] + port["frames"]["flooded"] == 100
    assert port["frames"]["storm"] >= 80  # 50 ms each, and three at once
    assert (port["addresses"], port["frames"]["not_learned"]) == (5, 95)


def test_a_fixed_address_holds_in_every_vlan(tmp_path):
    # Port `up` claims an address that is fixed behind `down`, with and without a tag.
    claimed = [frame(source=7, destination=8), tagged(frame(source=7, destination=8), 5)]
    sent = [frame(destination=7, mark=1), tagged(frame(destination=7, mark=2), 5)]
    fixed = '[addresses.fixed.it]\naddress = "02:00:00:00:00:07"\nport = "down"\n'
    with switch(two_ports(tmp_path, claimed + sent, fixed)) as running:
        running.until(4)
        frames = running.last()["ports"][0]["frames"]
    assert (frames["flooded"], frames["back"]) == (2, 0)
    assert marks(tmp_path / "down.pcap") == [0, 0, 1, 2]


def tagged(plain: bytes, vlan: int) -> bytes:
    return plain[:12] + b"\x81\x00" + vlan.to_bytes(2) + plain[12:]


def test_the_peak_of_a_ring_is_within_its_size(tmp_path):
    with switch(two_ports(tmp_path, [frame(size=1500)] * 100, SLOW)) as running:
        running.until(100)
        assert running.status()["rings"][2]["counts"]["peak_packets"] > 20
        assert running.command("set", "rings.slow.packets=20").returncode == 0
        assert running.status()["rings"][2]["counts"]["peak_packets"] == 20


def test_dpdk_writes_to_the_folder_of_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    with switch(two_ports(tmp_path, [])) as running:
        assert (tmp_path / "daqloom" / "dpdk").is_dir()
        running.last()


def test_a_loopback_that_is_down_is_reported(tmp_path):
    file = two_ports(tmp_path, [])
    enter = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives ordinary users no namespaces")
    with switch(file, "--set", "control.prometheus=127.0.0.1:0", enter=enter) as running:
        said = running.process.stderr.readline()
    assert "control.prometheus = 127.0.0.1:0 cannot be reached, as lo is down" in said

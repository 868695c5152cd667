"""Laboratories on machines that allow network namespaces."""

import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daqloom.lab import validity
from daqloom.lab.balance import settle
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.measure.run import measure
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario
from support.laboratories import FRAMES, RECEIVE, SEND, rack
from support.namespaces import NETWORKS

pytestmark = NETWORKS
PIPES: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def test_frames_that_a_switch_gets_back_are_not_lost() -> None:
    """Two switches send frames to each other until the table of the second is right."""
    network = lab_network(rack(readout__units=1))
    core, (up, _down) = network.towards
    with Laboratory(network) as lab:
        sender, receiver = lab.hosts
        lab.begin()
        lab.forward((core, (up, up)))
        command = [*receiver.enter, sys.executable, "-c", RECEIVE]
        with subprocess.Popen(command, **PIPES) as process:
            assert process.stdout.readline() == "ready\n"
            to = network.hosts[1].address
            subprocess.run([*sender.enter, sys.executable, "-c", SEND, to, "5"], check=True)
            assert any(lab.read().ports["uplink.0.up"].sent for _ in range(1000))
            lab.forward(network.towards)
            settle(lab)
            assert process.communicate()[0] == "5\n"


def test_a_full_port_drops_and_every_packet_is_accounted_for() -> None:
    """100 datagrams of full frames come at 40 Mb/s to a port of 20 Mb/s that holds 20: it sends one
    while two come, and drops between 1 and the 100 - 20 - 50 of a machine without pauses."""
    network = lab_network(rack(readout__units=1))
    with Laboratory(network) as lab:
        sender, receiver = lab.hosts
        lab.begin()
        command = [*receiver.enter, sys.executable, "-c", RECEIVE]
        with subprocess.Popen(command, **PIPES) as process:
            assert process.stdout.readline() == "ready\n"
            to = network.hosts[1].address
            subprocess.run([*sender.enter, sys.executable, "-c", SEND, to, "100"], check=True)
            found = settle(lab)
            received = int(process.communicate()[0])
        count = lab.read()
    port = count.ports["access.0.down"]
    assert port.sent == received
    assert port.sent + port.dropped == 100
    assert 0 < port.dropped <= 32  # two frames are under way or in the bucket at the end
    assert port.peak_bytes <= FRAMES * 1518
    assert (found.unaccounted, dict(found.in_hosts)) == (0, {"cable": 0, "socket": 0})


@pytest.mark.usefixtures("any_machine")
def test_a_run_in_a_laboratory_has_the_metrics_of_its_network() -> None:
    found = measure(rack(event__rate="30 Hz"))
    assert found.metric("events_built") or 0 > 0
    assert found.metric("events_wrong") == 0
    assert found.metric("packets_unaccounted") == 0
    assert found.metric("buffer_peak_bytes.tor") or 0 > 1518
    assert 0 < (found.metric("link_utilisation.access.0.down") or 0) < 1
    built, begun = (found.metric(f"events_accounted.{fate}") for fate in ("built", "begun"))
    assert built == begun


@pytest.mark.usefixtures("any_machine")
def test_static_windows_bound_the_content_of_a_port() -> None:
    """The kernel widens a clamped window by a quarter after packets of an Ethernet."""
    segments = 16
    event = {"event__size": "128 kB", "event__rate": "15 Hz"}
    window = {"transport__static_window": f"{1448 * segments} B"}
    found = measure(rack(network__switch__tor__model="infinite", **window, **event))
    # Two readout units; two frames of the bucket and other packets count as well.
    frames = (found.metric("buffer_peak_bytes.tor") or 0) / 1518
    assert 1.5 * segments < frames <= 2 * segments + 3


def test_a_machine_that_is_too_busy_gives_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(validity.RATES.limits, lateness=-1.0, lateness_unwatched=-1.0)
    monkeypatch.setattr(validity, "KINDS", (replace(validity.RATES, limits=late),))
    with pytest.raises(MeasureError, match="not a valid measurement of the network"):
        measure(rack(measure__duration="2 s"))


def test_nothing_is_left_of_a_laboratory_whose_process_is_killed() -> None:
    program = """
import sys, time
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.deployment.scenarios import load
with Laboratory(lab_network(load("lab-rack", {"readout.units": 2, "builders.units": 1}))) as lab:
    print(lab.switches.holder, *(host.holder for host in lab.hosts), flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", program], **PIPES) as process:
        holders = [int(number) for number in process.stdout.readline().split()]
        assert len(holders) == 4
        assert all(Path(f"/proc/{holder}").exists() for holder in holders)
        process.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + 60
    while any(is_alive(holder) for holder in holders):
        assert time.monotonic() < deadline_s
        os.sched_yield()


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # a zombie may stay


def test_present_interfaces_are_not_changed() -> None:
    before = sorted(name for _, name in socket.if_nameindex())
    with Laboratory(lab_network(rack())):
        assert sorted(name for _, name in socket.if_nameindex()) == before
    assert sorted(name for _, name in socket.if_nameindex()) == before


SOFTWARE = {
    "network__switch__tor__model": "software",
    "network__switch__tor__pace": "19 Mb/s",
    "event__rate": "20 Hz",
}


@pytest.mark.usefixtures("any_machine")
def test_a_software_switch_drops_by_short_rings_alone() -> None:
    pytest.importorskip("daqloom._switch")
    found = measured_by_software(rack(**SOFTWARE, network__switch__tor__queue_packets=500))
    assert (found.metric("packets_dropped"), found.metric("packets_unaccounted")) == (0, 0)
    assert (found.metric("buffer_peak_bytes.tor") or 0) > 10_000
    pytest.importorskip("daqloom._switch")
    found = measured_by_software(rack(**SOFTWARE, network__switch__tor__queue_packets=4))
    expect_drops_accounted(found)


def expect_drops_accounted(found: Result) -> None:
    assert (found.metric("packets_dropped") or 0) > 0
    assert found.metric("packets_unaccounted") == 0
    assert found.metric("events_wrong") == 0


def measured_by_software(scenario: Scenario) -> Result:
    """The result; skips on a machine that cannot run a software switch."""
    try:
        return measure(scenario)
    except MeasureError as error:
        lacks = ("does not start", "require the program", "missed")  # DPDK, ethtool, a core
        if any(words in str(error) for words in lacks):
            pytest.skip(str(error))
        raise


@pytest.mark.usefixtures("any_machine")
def test_a_memory_of_all_ports_has_its_dynamic_threshold_in_a_laboratory() -> None:
    pytest.importorskip("daqloom._switch")
    alpha, cells, cell_bytes, metadata_bytes, frame_bytes = 1.0, 109, 256, 64, 1514
    memory = {"model": "shared-memory", "buffer": f"{cells * cell_bytes} B", "alpha": alpha}
    keys = {f"network__switch__tor__{key}": value for key, value in memory.items()}
    found = measured_by_software(rack(**keys))
    # A frame is admitted while the port has less than alpha times the free part of the memory.
    each = -(-(frame_bytes + metadata_bytes) // cell_bytes)
    below = max(held for held in range(cells) if held < alpha * (cells - held))
    peak = found.metric("buffer_peak_bytes.tor") or 0
    assert (below // each - 1) * frame_bytes <= peak <= (below + each) * cell_bytes
    expect_drops_accounted(found)


def test_an_ordinary_user_may_have_a_laboratory() -> None:
    """With user namespaces, and a process of root that can become another user."""
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user")
    program = """
from daqloom.lab.balance import settle
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.deployment.scenarios import load
import subprocess
network = lab_network(load("lab-pair"))
with Laboratory(network) as lab:
    ping = [*lab.hosts[0].enter, "ping", "-c", "1", "-W", "20", network.hosts[1].address]
    subprocess.run(ping, check=True, stdout=subprocess.DEVNULL)
    print(settle(lab).unaccounted)
"""
    import daqloom

    packages = [str(Path(daqloom.__file__).parent.parent), sysconfig.get_path("purelib")]
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    env = {"PYTHONPATH": os.pathsep.join(packages), "PATH": os.environ["PATH"]}
    env["HOME"] = "/nonexistent"
    command = [*nobody, "/usr/bin/python3", "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode and "MeasureError" not in done.stderr:
        pytest.skip(f"nobody can run daqloom here: {done.stderr.strip()[-200:]}")
    if "does not allow network namespaces" in done.stderr:
        pytest.skip("this machine gives ordinary users no namespaces")
    assert done.stdout == "0\n", done.stderr

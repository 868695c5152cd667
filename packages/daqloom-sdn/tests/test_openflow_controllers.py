"""Tests of the software switch under OpenFlow 1.3 controllers: ovs-ofctl and os-ken."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.openflow_switch import FLOWS, HELLO, flow, ip, packed
from support.softswitch.switches import RUNS, WITH_SUPPORT, Running, frame, switch, write_pcap

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

pytestmark = pytest.mark.process

RING = """
[rings.one]
port = "down"
to = "10.9.9.9"
packets = 64
"""


@contextmanager
def flooded(folder: Path, controller: str) -> Iterator[Running]:
    """Yield a switch that receives frames to UDP ports 5000, 5001 and 5002 without end."""
    write_pcap(folder / "in.pcap", [frame(to_port=port) for port in (5000, 5001, 5002)])
    path = folder / "switch.toml"
    path.write_text(f"""
{RUNS}
[ports.up]
device = "net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1"
packets = 64
[ports.down]
device = "net_null1,no-rx=1"
packets = 64
{RING}
[control]
openflow = ["{controller}"]
datapath = 77
""")
    with switch(path) as running:
        yield running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed")
def test_plain_ofctl_sets_and_sees_flows_and_meters(tmp_path):
    at = f"unix:{tmp_path}/of.sock"

    def ofctl(*words: str, code: int = 0) -> str:
        command = ["ovs-ofctl", "-O", "OpenFlow13", "--timeout=30", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    with flooded(tmp_path, f"punix:{tmp_path}/of.sock") as running:
        assert "1(up)" in ofctl("show", at)
        ofctl("add-meter", at, "meter=7,pktps,band=type=drop,rate=1")
        ofctl("add-flow", at, "priority=5,udp,tp_dst=5000,actions=set_queue:1,output:2")
        ofctl("add-flow", at, "priority=5,udp,tp_dst=5001,actions=meter:7,output:2")
        shown = ofctl("dump-flows", at)
        assert "udp,tp_dst=5000 actions=set_queue:1,output:2" in shown
        assert "udp,tp_dst=5001 actions=meter:7,output:2" in shown
        assert "OFPBAC_BAD_OUT_PORT" in ofctl("add-flow", at, "actions=output:9", code=1)
        assert "OFPBMC_BAD_FIELD" in ofctl("add-flow", at, "icmp_type=3,icmp,actions=drop", code=1)
        while running.status()["rings"][2]["counts"]["packets"] == 0:
            pass
        while running.status()["ports"][0]["frames"]["metered"] == 0:
            pass
        assert "n_packets=0" not in ofctl("dump-flows", at, "udp,tp_dst=5000")
        assert "rate=1" in ofctl("dump-meters", at)
        assert "flow_count:1" in ofctl("meter-stats", at)
        assert "port  2:" in ofctl("dump-ports", at)
        assert "port 2 queue 1" in ofctl("queue-stats", at)
        assert "active=2" in ofctl("dump-tables", at)
        assert "output set_queue" in ofctl("dump-table-features", at)
        assert running.status()["openflow"] == {"controllers": 0, "entries": 2, "meters": 1}
        ofctl("del-meter", at, "meter=7")
        ofctl("del-flows", at, "udp,tp_dst=5000")
        assert running.status()["openflow"]["entries"] == 0
        last = running.last()
    counts = last["rings"][2]["counts"]
    assert counts["packets"] > 0
    assert not (tmp_path / "of.sock").exists()


def test_a_controller_of_os_ken_steers_it(tmp_path):
    port = free_port()
    result = tmp_path / "result.json"
    with flooded(tmp_path, f"tcp:127.0.0.1:{port}") as running:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "support.openflow_controller", str(result)),
                *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            ],
            env=WITH_SUPPORT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.exists(), done.stderr
        found = json.loads(result.read_text())
        last = running.last()
    assert found["datapath"] == 77
    assert found["ports"] == [[1, "up"], [2, "down"]]
    assert found["errors"] == [[6, 3]]  # it has no groups
    assert found["meter"]["id"] == 7
    assert found["meter"]["flows"] == 1
    assert found["meter"]["packets"] - found["meter"]["dropped"] < found["meter"]["packets"] / 2
    for packets, size in found["flows"].values():
        assert size == 100 * packets
    assert last["rings"][2]["counts"]["packets"] > 0
    assert last["ports"][0]["frames"]["metered"] >= found["meter"]["dropped"]
    assert last["ports"][0]["frames"]["by_rule"] >= 100


def test_a_controller_that_reads_nothing_holds_up_neither_operators_nor_the_end(tmp_path):
    with (
        flooded(tmp_path, f"punix:{tmp_path}/of.sock") as running,
        socket.socket(socket.AF_UNIX) as controller,
    ):
        controller.connect(f"{tmp_path}/of.sock")
        controller.sendall(HELLO)
        for number in range(300):
            controller.sendall(packed(flow(*ip(f"10.0.{number >> 8}.{number & 255}"))))
        controller.sendall(FLOWS * 2340)  # much work
        while running.status()["openflow"]["entries"] < 300:
            pass
        assert running.command("set", "rings.one.packets=32").returncode == 0
        running.process.send_signal(signal.SIGTERM)
        _, errors = running.process.communicate(timeout=60)
        assert running.process.returncode == 0, errors
        assert "raised exception" not in errors

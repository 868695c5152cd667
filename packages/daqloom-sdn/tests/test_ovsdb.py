"""The software switch as a client of a real ovsdb-server."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.softswitch.switches import DAQLOOM, database_rings, switch, two_ports

pytestmark = pytest.mark.process

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
pytest.importorskip("ovs", reason="the Python package ovs is not installed")
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
needs_server = pytest.mark.skipif(
    shutil.which("ovsdb-server", path=PATH) is None or not SCHEMA.exists(),
    reason="Open vSwitch's database is not installed",
)


@contextmanager
def database(folder: Path) -> Iterator[None]:
    tool = [shutil.which("ovsdb-tool", path=PATH) or "", "create"]
    subprocess.run([*tool, str(folder / "conf.db"), str(SCHEMA)], check=True, timeout=60)
    pid = folder / "server.pid"
    subprocess.run(  # returns when it listens
        [
            *(shutil.which("ovsdb-server", path=PATH) or "", str(folder / "conf.db")),
            *(f"--remote=punix:{folder}/db.sock", f"--unixctl={folder}/ctl"),
            *("--detach", "--no-chdir", f"--pidfile={pid}"),
        ],
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    try:
        yield
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def vsctl(folder: Path, *words: str) -> str:
    """Waits, as plain `ovs-vsctl` does, until the switch has the new configuration."""
    command = [shutil.which("ovs-vsctl", path=PATH) or "", f"--db=unix:{folder}/db.sock"]
    done = subprocess.run(
        [*command, "--timeout=30", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_server
def test_plain_vsctl_sets_paces_and_sees_ports(tmp_path):
    file = two_ports(tmp_path, [], database_rings(f"unix:{tmp_path}/db.sock"))
    with database(tmp_path):
        vsctl(tmp_path, "--no-wait", "init")
        with switch(file) as running:
            vsctl(
                tmp_path,
                *("add-br", "daq", "--", "add-port", "daq", "down"),
                *("--", "--id=@a", "create", "queue", "other_config:max-rate=5000000"),
                *("--", "--id=@b", "create", "queue", "other_config:max-rate=7000000"),
                *("--", "--id=@q", "create", "qos", "type=linux-htb"),
                *("queues:1=@a", "queues:2=@b", "--", "set", "port", "down", "qos=@q"),
            )
            rates = {ring["name"]: ring["rate_bps"] for ring in running.status()["rings"]}
            assert (rates["one"], rates["two"]) == (5_000_000, 7_000_000)
            [second] = vsctl(
                *(tmp_path, "--bare", "--columns=_uuid"),
                *("find", "queue", "other_config:max-rate=7000000"),
            ).split()
            vsctl(tmp_path, "set", "queue", second, "other_config:max-rate=9000000")
            assert running.status()["rings"][3]["rate_bps"] == 9_000_000
            assert vsctl(tmp_path, "get", "interface", "down", "ofport") == "2"
            assert vsctl(tmp_path, "get", "interface", "down", "link_state") == "up"
            assert "tx_packets=0" in vsctl(tmp_path, "get", "interface", "down", "statistics")
            vsctl(tmp_path, "add-port", "daq", "left")
            error = vsctl(tmp_path, "get", "interface", "left", "error")
            assert "the switch has no port left" in error
            # Too slow to be a pace: the others stay, and the port has an error.
            vsctl(tmp_path, "set", "queue", second, "other_config:max-rate=10")
            assert "must be" in vsctl(tmp_path, "get", "interface", "down", "error")
            assert running.status()["rings"][3]["rate_bps"] == 9_000_000


@needs_server
def test_a_database_that_is_not_there_is_named(tmp_path):
    file = two_ports(tmp_path, [], database_rings(f"unix:{tmp_path}/db.sock"))
    done = subprocess.run(
        [*DAQLOOM, "switch", "run", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "no ovsdb-server answers there" in done.stderr

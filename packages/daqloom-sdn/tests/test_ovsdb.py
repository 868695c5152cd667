"""Tests of the software switch as a client of a real ovsdb-server."""

import subprocess
from functools import partial

import pytest

from support.openvswitch import database, vsctl
from support.softswitch.switches import DAQLOOM, database_rings, switch, two_ports

pytestmark = pytest.mark.process

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
pytest.importorskip("ovs", reason="the Python package ovs is not installed")


def test_plain_vsctl_sets_paces_and_sees_ports(tmp_path):
    file = two_ports(tmp_path, [], database_rings(f"unix:{tmp_path}/db"))
    with database(tmp_path):
        vsctl(tmp_path, "init")
        plain = partial(vsctl, tmp_path, wait=True)
        with switch(file) as running:
            plain(
                *("add-br", "daq", "--", "add-port", "daq", "down"),
                *("--", "--id=@a", "create", "queue", "other_config:max-rate=5000000"),
                *("--", "--id=@b", "create", "queue", "other_config:max-rate=7000000"),
                *("--", "--id=@q", "create", "qos", "type=linux-htb"),
                *("queues:1=@a", "queues:2=@b", "--", "set", "port", "down", "qos=@q"),
            )
            rates = {ring["name"]: ring["rate_bps"] for ring in running.status()["rings"]}
            assert (rates["one"], rates["two"]) == (5_000_000, 7_000_000)
            [second] = plain(
                *("--bare", "--columns=_uuid"),
                *("find", "queue", "other_config:max-rate=7000000"),
            ).split()
            plain("set", "queue", second, "other_config:max-rate=9000000")
            assert running.status()["rings"][3]["rate_bps"] == 9_000_000
            assert plain("get", "interface", "down", "ofport") == "2"
            assert plain("get", "interface", "down", "link_state") == "up"
            assert "tx_packets=0" in plain("get", "interface", "down", "statistics")
            plain("add-port", "daq", "left")
            error = plain("get", "interface", "left", "error")
            assert "the switch has no port left" in error
            # The rate is too low: the port reports an error, and the earlier rate remains.
            plain("set", "queue", second, "other_config:max-rate=10")
            assert "must be" in plain("get", "interface", "down", "error")
            assert running.status()["rings"][3]["rate_bps"] == 9_000_000


def test_a_database_that_is_not_there_is_named(tmp_path):
    file = two_ports(tmp_path, [], database_rings(f"unix:{tmp_path}/db"))
    done = subprocess.run(
        [*DAQLOOM, "switch", "run", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "no ovsdb-server answers there" in done.stderr

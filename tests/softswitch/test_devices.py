"""Devices of a switch, each of which belongs to one switch at a time."""

import subprocess

import pytest

from support.softswitch.switches import DAQLOOM, switch, two_ports

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

from daqloom.results.errors import MeasureError
from daqloom.softswitch.devices import identities, lock

pytestmark = pytest.mark.process


def test_a_device_is_identified_by_its_resource_in_any_spelling(tmp_path):
    def same(*devices: str) -> set[tuple[str, ...]]:
        return {tuple(identities(device)) for device in devices}

    assert same("0000:3b:00.0", "3b:00.0", "0000:3B:00.0,arg=1") == {("card 0000:3b:00.0",)}
    [lo] = same("net_af_packet0,iface=lo", "net_pcap7,iface=lo", "net_af_xdp1,iface=lo,x=1")
    assert lo == ("interface number 1",)
    (tmp_path / "link").symlink_to(tmp_path)
    [_] = same(f"net_pcap0,rx_pcap=a,tx_pcap={tmp_path}/b", f"net_pcap1,tx_pcap={tmp_path}/link/b")
    # Both ends of a socket may be those of switches, and each of one alone.
    for server, client in (
        ("net_memif0,role=server,socket=/x/y", "net_memif4,socket=/x/y"),
        ("net_vhost0,iface=/x/y", "net_virtio_user0,path=/x/y,queues=1"),
    ):
        [[listens]] = same(server, server.replace("0", "5"))
        [[connects]] = same(client)
        assert listens.replace("server", "client") == connects != listens
    assert same("net_null0", "net_ring0", "net_pcap0,rx_pcap=a") == {()}


def test_two_ports_do_not_share_an_interface():
    devices = {"a": "net_af_packet0,iface=lo", "b": "net_af_packet1,iface=lo"}
    said = r"ports\.b and ports\.a have the same interface"
    with pytest.raises(MeasureError, match=said), lock(devices):
        pass
    with lock({"a": devices["a"]}):
        pass


def test_a_second_switch_on_a_device_is_refused_and_names_the_first(tmp_path):
    file = two_ports(tmp_path, [])
    command = [*DAQLOOM, "switch", "run", str(file)]
    with switch(file) as running:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        [said] = done.stderr.splitlines()
        assert said.startswith("daqloom: ports.up.device = net_pcap0,")
        assert f"is in use by another switch, process {running.process.pid};" in said
        running.process.kill()
        running.process.communicate()
    with switch(file) as running:  # a killed one keeps no lock
        running.last()

"""Tests of a software switch's configuration, applied to a real Open vSwitch."""

import os
import shutil
from pathlib import Path

import pytest

from daqloom.results.errors import MeasureError
from daqloom.softswitch.load import build
from daqloom_sdn.openvswitch import flows_of, interface, transaction
from support.softswitch.switches import in_a_namespace

FILE = """
[ports.dcm]
device = "net_af_packet0,iface=sa"
[ports.ros1]
device = "sb"
[ports.ros2]
device = "sc"
[rings.dcm]
port = "dcm"
to = "10.0.0.1"
rate = "5 Mb/s"
[rings.slow]
port = "dcm"
to = "2001:db8::/32"
protocol = "tcp"
to_port = 80
priority = 7
rate = "2 Mb/s"
[rings.free]
port = "ros1"
vlan = 5
ingress = "dcm"
[rules.no-ntp]
protocol = "udp"
to_port = 123
action = "drop"
priority = 1
[addresses.fixed.x]
address = "02:00:00:00:00:09"
port = "ros2"
"""


def switch(**changes: object):
    import tomllib

    return build(tomllib.loads(FILE), {key.replace("__", "."): v for key, v in changes.items()})


def test_rings_are_flows_and_those_with_a_pace_queues():
    assert list(flows_of(switch())) == [
        'priority=2,ip,nw_dst=10.0.0.1/32,actions=set_queue:1,output:"sa"',
        'priority=9,tcp6,ipv6_dst=2001:db8::/32,tp_dst=80,actions=set_queue:2,output:"sa"',
        'priority=2,in_port="sa",dl_vlan=5,actions=output:"sb"',
        "priority=3,udp,tp_dst=123,actions=drop",
        'priority=1,dl_dst=02:00:00:00:00:09,actions=output:"sc"',
        "priority=0,actions=normal",
    ]
    words = transaction(switch(), "br0", "system", [("qos", "1234")])
    assert words.count("create") == 3  # two queues and the QoS of their port
    assert "other_config:max-rate=5000000" in words
    assert words[words.index("destroy") :][:3] == ["destroy", "qos", "1234"]
    assert words[-1] == "qos=@qos-dcm"


def test_devices_are_interfaces_or_cards():
    assert interface("eth1") == ("eth1", "")
    assert interface("net_af_packet0,iface=eth1,framecnt=64") == ("eth1", "")
    assert interface("0000:3b:00.1") == ("dpdk-3b-00-1", "0000:3b:00.1")
    with pytest.raises(MeasureError, match="does not support the device net_ring0,x=1"):
        interface("net_ring0,x=1")
    with pytest.raises(MeasureError, match="without protocol"):
        list(flows_of(switch(rings__dcm__to_port=5)))
    with pytest.raises(MeasureError, match="is no name of a bridge"):
        transaction(switch(), "a b", "system")


@pytest.mark.skipif(
    shutil.which("ovs-vswitchd", path=f"{os.environ.get('PATH')}:/usr/sbin") is None,
    reason="Open vSwitch is not installed",
)
@pytest.mark.process
def test_a_real_open_vswitch_forwards_as_it_is_configured(tmp_path: Path) -> None:
    file = tmp_path / "switch.toml"
    file.write_text(FILE)
    found = in_a_namespace("openvswitch_inside", str(tmp_path), str(file))
    assert sorted(found["rates"]) == ["max-rate=2000000", "max-rate=5000000"]
    assert (found["queues"], found["qos"]) == (2, 1)
    assert len(found["flows"]) == 6
    assert " priority=2,ip,nw_dst=10.0.0.1 actions=set_queue:1,output:sa" in found["flows"]
    assert found["came"] == {"a": [1, 4], "c": [3]}

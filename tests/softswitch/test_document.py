"""The file of a software switch: what is refused, and what it takes."""

import pytest

from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.document import SwitchFile
from daqloom.softswitch.load import alter, build, load
from daqloom.softswitch.reference import reference
from daqloom.softswitch.sizes import IN_FLIGHT, buffers_of, memory_of
from support.repository import ROOT

SWITCH = {
    "ports": {"up": {"device": "net_null0"}, "down": {"device": "net_null1", "packets": 100}},
    "rings": {"dcm1": {"port": "down", "to": "10.0.0.1", "rate": "0.78 Gb/s", "packets": 14_000}},
}
CORES, SHARED = {"runs.cores": [1, 2]}, {"shared_memory.buffer": "1 MB"}


def switch(**keys: object) -> SwitchFile:
    return build(SWITCH | keys)


def test_a_file_is_read_with_overrides_and_keys_change_and_go(tmp_path):
    path = tmp_path / "switch.toml"
    path.write_text('[ports.a]\ndevice = "net_null0"\n')
    read = load(path, ["rings.x.port=a", "rings.x.to=10.0.0.0/8", "rings.x.rate=1 Gb/s"])
    assert read.ports["a"].packets == 4096
    assert read.rings["x"].rate == 1_000_000_000
    assert read.rings["x"].to == "10.0.0.0/8"
    changed = alter(switch(), {"rings.dcm1.rate": "1 Gb/s", "rules.x.to_port": 123})
    assert changed.rings["dcm1"].rate == 1_000_000_000
    assert changed.rules["x"].action == "forward"
    assert not alter(changed, {"rules.x": None}).rules
    with pytest.raises(ScenarioError, match=r"rules\.y is not given"):
        alter(changed, {"rules.y": None})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (CORES | SHARED, "shared_memory.buffer needs one core"),
        (CORES | {"rings.dcm1.pause_at": 5}, "rings.dcm1.pause_at needs one core"),
        (SHARED | {"shared_memory.dedicated": "2 MB"}, "dedicated is larger than buffer"),
        ({"control.openflow": ["10.0.0.1:6653"]}, "is no controller of OpenFlow; expected tcp:"),
        ({"control.openflow": ["tcp:10.0.0.1:of"]}, "is no controller of OpenFlow; expected tcp:"),
        ({"control.openflow": ["ssl:[::1]:"]}, "is no controller of OpenFlow; expected tcp:"),
        ({"control.openflow": ["ptcp:here"]}, "is no controller of OpenFlow; expected tcp:"),
        (
            {"control.openflow": ["ptcp:6653"]},
            'control: openflow = "ptcp:6653" would let all users of this machine steer the switch',
        ),
        ({"ports.up.rate": "1 Gb/s"}, 'unknown key "ports.up.rate"'),
        ({"rings.dcm1.port": "left"}, 'rings.dcm1.port = "left" is no port of the switch'),
        ({"rings.dcm1.to": "10.0.0.300"}, "is not an IP address or network"),
        ({"rings.dcm1.to": "10.0.0.1/8"}, "is not an IP address or network"),
        ({"rings.dcm1.packets": 0}, "is too small; it must be at least 1"),
        ({"rings.dcm1.rate": "1 Gb"}, "is not in b/s"),
        ({"rings.dcm1.destination": "02:00"}, "is not an Ethernet address"),
        ({"rings.new.port": "up"}, "rings.new: to is missing"),
        ({"rules.x.action": "port"}, "rules.x: port is for action"),
        ({"rules.x.action": "push"}, "is not known; expected"),
        ({"ports.up.device": "net_null1"}, 'ports have the device "net_null1" twice'),
        ({"ports.up.device": "a b"}, "is not a device of DPDK"),
        ({"addresses.fixed.x.address": "02:00:00:00:00:01"}, "lacks the key port"),
        ({"runs.buffer_size": "64 B"}, "is too small; it must be at least 256 B"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(keys, said):
    with pytest.raises(ScenarioError) as refused:
        build(SWITCH, keys)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_authenticated_controllers_are_accepted():
    safe = ["punix:/run/of", "pssl:6653", "pssl:6653:0.0.0.0", "ssl:10.0.0.1", "tcp:10.0.0.1:6653"]
    assert list(switch(control={"openflow": safe}).control.openflow) == safe
    assert switch(control={"openflow": ["ptcp:"], "insecure": True}).control.insecure


def test_buffers_are_for_all_that_rings_and_devices_hold():
    # The rings of two ports and of one destination, and two queues of 512 at each port.
    assert buffers_of(switch()) == 4096 + 100 + 14_000 + 2 * 2 * 512 + IN_FLIGHT
    assert buffers_of(switch(runs={"buffers": 1000})) == 1000
    assert memory_of(switch()) > 2048 * buffers_of(switch())


def test_the_reference_page_is_that_of_the_models():
    assert (ROOT / "docs" / "reference" / "software-switch.md").read_text() == reference()

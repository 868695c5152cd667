"""Device under test: set, read back and restored, also after failures."""

import fcntl
import gc
import json
import os
from dataclasses import fields

import pytest

from daqloom.deployment.scenarios import load
from daqloom.device import saved_state
from daqloom.device.adapter import PortBuffer, PortCount
from daqloom.device.credentials import Credentials, credentials_of
from daqloom.device.desired_state import desired_buffer
from daqloom.device.document import load_device
from daqloom.device.result import device_metrics
from daqloom.device.under_test import DeviceUnderTest, restore, restore_left
from daqloom.measure.dry_run import dry_run
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from support.device_in_memory import PORTS, installed
from support.repository import ROOT

FILE = """
ports = ["p1", "p2"]
[configure]
adapter = "memory"
[count]
adapter = "memory"
"""
RACK = {
    "measure.lab": "none",
    "network.switch.tor.model": "drop-tail",
    "network.switch.tor.port_limit": "50 kB",
    "network.switch.tor.queue_packets": 10_000,
}


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return installed(monkeypatch)


def rack(tmp_path, text=FILE, **changes):
    file = tmp_path / "tor.toml"
    file.write_text(text)
    more = {key.replace("__", "."): value for key, value in changes.items()}
    return load("lab-rack", RACK | {"measure.device": str(file)} | more)


def limits(device):
    return {port: buffer.limit_bytes for port, buffer in device.buffers.items()}


def test_a_device_has_the_scenarios_buffers_and_then_its_own(device, tmp_path):
    with DeviceUnderTest(rack(tmp_path)) as under_test:
        assert limits(device) == {"p1": 50_000, "p2": 50_000}
        [kept] = saved_state.folder().glob("*.json")
        assert kept.stat().st_mode & 0o777 == 0o600
        assert json.loads(kept.read_text())["configuration"] == {"p1": 1000, "p2": 1000}
        assert saved_state.leftovers() == [], "a process has locked it"
        assert under_test.desired == PortBuffer(limit_bytes=50_000)
    assert limits(device) == {"p1": 1000, "p2": 1000}
    assert not list(saved_state.folder().glob("*.json"))


def test_a_device_may_round(device, tmp_path):
    device.rounds_to = 256
    with DeviceUnderTest(rack(tmp_path)):
        assert limits(device)["p1"] == 49_920
    device.rounds_to = 8192
    with pytest.raises(MeasureError, match="accepted limit_bytes = 50000 and has 49152"):
        DeviceUnderTest(rack(tmp_path)).__enter__()


def test_a_device_that_ignores_a_value_is_detected(device, tmp_path):
    device.ignores = True
    sentence = "p1: the device accepted limit_bytes = 50000 and has 1000"
    with pytest.raises(MeasureError, match=sentence):
        DeviceUnderTest(rack(tmp_path)).__enter__()
    assert device.orders[2:] == ["apply 50000", "restore", "exit", "exit"]
    assert saved_state.leftovers() == []


@pytest.mark.parametrize("before", [0, 1])
def test_a_device_that_refuses_in_the_middle_is_restored(device, tmp_path, before):
    # One of two ports is set; all further changes fail, also those that restore it.
    device.fails_after = before
    with pytest.raises(
        MeasureError, match=r"has refused; in addition, .*not restored.*lab restore"
    ):
        DeviceUnderTest(rack(tmp_path)).__enter__()
    [left] = saved_state.leftovers()
    with pytest.raises(MeasureError, match="run `daqloom lab restore` first"):
        DeviceUnderTest(rack(tmp_path)).__enter__()
    with pytest.raises(MeasureError, match="was not restored"):
        restore(left)
    device.fails_after = -1
    assert restore(left).old.source.endswith("tor.toml")
    assert limits(device) == {"p1": 1000, "p2": 1000}
    assert saved_state.leftovers() == []
    with DeviceUnderTest(rack(tmp_path)):
        assert limits(device)["p2"] == 50_000


def test_a_failure_restores_a_device_and_no_secret_is_saved(device, tmp_path, monkeypatch):
    with pytest.raises(ZeroDivisionError), DeviceUnderTest(rack(tmp_path)):
        _ = 1 / 0
    assert limits(device) == {"p1": 1000, "p2": 1000}
    monkeypatch.setenv("DAQLOOM_DEVICE_PASSWORD", "open-sesame")
    with DeviceUnderTest(rack(tmp_path)):
        [kept] = saved_state.folder().glob("*.json")
        assert "open-sesame" not in kept.read_text()
        assert "open-sesame" not in rack(tmp_path).model_dump_json()


def test_one_measurement_at_a_time_has_a_device(device, tmp_path):
    scenario = rack(tmp_path)
    path = saved_state.file_of(device.identity)
    handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(MeasureError, match="another measurement has this device"):
            DeviceUnderTest(scenario).__enter__()
    finally:
        os.close(handle)
    assert "apply 50000" not in device.orders


@pytest.mark.parametrize("other", ['timeout = "7 s"', ""])
def test_a_switch_has_one_identity_in_all_files(device, tmp_path, other):
    table = f'ports = ["p1"]\n[configure]\nadapter = "memory"\n{other}'
    scenario = rack(tmp_path, FILE)
    (tmp_path / "other.toml").write_text(table)
    second = load("lab-rack", RACK | {"measure.device": str(tmp_path / "other.toml")})
    with DeviceUnderTest(scenario):
        with pytest.raises(MeasureError, match="another measurement has this device"):
            DeviceUnderTest(second).__enter__()
        device.identity = "serial 2"
        with DeviceUnderTest(second):
            assert len(list(saved_state.folder().glob("*.json"))) == 2
        device.identity = "serial 1"


def left_by_kill(device, tmp_path, identity, ports, limit):
    """A measurement that ends without restoring its device."""
    device.identity = identity
    file = f'ports = {json.dumps(ports)}\n[configure]\nadapter = "memory"\n'
    (tmp_path / identity).mkdir()
    scenario = rack(tmp_path / identity, file, network__switch__tor__port_limit=f"{limit} B")
    under_test = DeviceUnderTest(scenario)
    under_test.__enter__()
    under_test._stack.pop_all()  # not restored, and unlocked
    assert device.buffers[ports[0]].limit_bytes == limit


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_devices_are_restored_in_order_of_time(device, tmp_path, names):
    # One switch without a unique identity, at two addresses.
    for port in ("p1", "p2"):
        device.buffers[port] = PortBuffer(limit_bytes=123_456_789)
    left_by_kill(device, tmp_path, names[0], ["p1", "p2"], 60_000)
    left_by_kill(device, tmp_path, names[1], ["p1"], 30_000)
    gc.collect()
    done, failures = restore_left()
    assert failures == []
    assert limits(device) == {"p1": 123_456_789, "p2": 123_456_789}
    newer, older = (each.sentence for each in done)
    assert "has what it had before" in newer
    assert "(p1: limit_bytes 123456789)" in newer
    assert "has again what it had at" in older
    assert "(p1, p2: limit_bytes 123456789)" in older
    assert saved_state.leftovers() == []


def test_a_device_that_is_changed_after_its_restoration_is_a_failure(device, tmp_path):
    left_by_kill(device, tmp_path, "a", ["p1"], 60_000)
    gc.collect()
    device.after_restore = 70_000
    done, [failure] = restore_left()
    assert done == []
    assert "no longer has what it had" in failure


def test_a_damaged_saved_state_is_refused(device, tmp_path):
    path = saved_state.file_of(device.identity)
    for text in ("{", "[]", '{"device": {}}', '{"device": 5, "configuration": {}}'):
        path.write_text(text)
        with pytest.raises(MeasureError, match="is damaged"):
            restore(path)


def test_a_dry_run_reaches_no_device(device, tmp_path):
    lines = list(dry_run(rack(tmp_path)))
    assert device.orders == []
    assert any("memory sets limit_bytes = 50000 on 2 ports" in line for line in lines)
    assert DeviceUnderTest(rack(tmp_path)).plan() == ["set p1 50000", "set p2 50000"]


def test_a_dry_run_prints_the_programs_of_a_device_and_runs_none(tmp_path):
    mark = tmp_path / "ran"
    table = f'adapter = "linux"\nthrough = ["sh", "-c", "touch {mark}"]\n'
    text = f'ports = ["swp1"]\n[configure]\n{table}[count]\n{table}'
    lines = list(dry_run(rack(tmp_path, text)))
    asked = f"sh -c 'touch {mark}' tc -j -s qdisc show dev swp1"
    assert lines.count(asked) == 2, "to set, and to count"
    assert any("tc -batch -    # bfifo limit 50000 for swp1" in line for line in lines)
    assert not mark.exists()


TAIL = {"model": "drop-tail", "queue_packets": 40}


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ({"model": "infinite"}, PortBuffer()),
        ({"model": "drop-tail", "port_limit": "30 kB"}, PortBuffer(limit_bytes=30_000)),
        (TAIL, PortBuffer(limit_packets=40)),
        (TAIL | {"port_limit": "90 kB"}, PortBuffer(limit_bytes=90_000, limit_packets=40)),
        (
            {"model": "shared-memory", "buffer": "10 MB", "dedicated": "2 MB", "alpha": 0.5},
            PortBuffer(shared_bytes=8_000_000, reserved_bytes=500_000, alpha=0.5),
        ),
        ({"model": "shared-memory", "alpha": 2.0}, PortBuffer(alpha=2.0)),
        (
            {"model": "software", "queue_packets": 64, "pace": "10 Mb/s"},
            PortBuffer(limit_packets=64, pace_bps=10_000_000),
        ),
        (
            {"model": "drop-tail", "port_limit": "30 kB", "ecn_threshold": "9 kB"},
            PortBuffer(limit_bytes=30_000, ecn_bytes=9000),
        ),
    ],
)
def test_the_desired_buffer_of_ports(switch, expected):
    keys = {f"network.switch.tor.{key}": value for key, value in switch.items()}
    everything = {field.name for field in fields(PortBuffer)}
    assert desired_buffer(load("lab-rack", keys), "tor", 4, everything) == expected


def test_keys_without_effect_need_not_be_settable_and_others_are_refused(device, tmp_path):
    keys = {"model": "drop-tail", "port_limit": "30 kB", "buffer": "0 B", "ecn_threshold": "0 B"}
    scenario = load("lab-rack", {f"network.switch.tor.{key}": keys[key] for key in keys})
    assert desired_buffer(scenario, "tor", 4, {"limit_bytes"}) == PortBuffer(limit_bytes=30_000)
    both = PortBuffer(limit_bytes=30_000, ecn_bytes=0)
    assert desired_buffer(scenario, "tor", 4, {"limit_bytes", "ecn_bytes"}) == both
    scenario = rack(tmp_path, network__switch__tor__ecn_threshold="9 kB")
    with pytest.raises(ScenarioError, match=r"ecn_threshold cannot be set .* sets .*port_limit"):
        DeviceUnderTest(scenario)
    assert device.orders == []


def test_metrics_are_differences_of_the_ports_counters():
    begin = {"p1": PortCount(100, 1000, 5, 70), "p2": PortCount(10, 100, 0, 30)}
    end = {"p1": PortCount(190, 9000, 15, 700), "p2": PortCount(10, 100, 0, 300)}
    assert device_metrics(begin, end, "tor") == {
        "packets_dropped": 10,
        "drops_by_port": {"p1": 10},
        "drop_fraction": 0.1,
        "buffer_peak_bytes": {"tor": 1000},
    }
    without_peak = {**end, "p2": PortCount(10, 1, 0)}
    assert "buffer_peak_bytes" not in device_metrics(begin, without_peak, "tor")
    assert device_metrics({}, {}, "tor") == {}
    with pytest.raises(MeasureError, match="p1: a counter of the device fell from 15 to 5"):
        device_metrics(end, begin, "tor")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "ports"),
        ('ports = []\n[count]\nadapter = "memory"', "ports"),
        ('ports = ["a", "a"]\n[count]\nadapter = "memory"', "a port is named twice"),
        ('ports = ["a"]', "neither configure nor count"),
        ('ports = ["a"]\n[count]', "neither configure nor count"),
        ('ports = ["a"]\n[count]\nadress = "x"', "count has no adapter"),
        ('ports = ["a"]\nlevle = "tor"\n[count]\nadapter = "x"', 'unknown key "levle"'),
        ('ports = ["a"]\nlevel = "roof"\n[count]\nadapter = "x"', "level"),
        ('ports = ["a"]\nsettle = "1 d"\n[count]\nadapter = "x"', "settle"),
        (
            'ports = ["a"]\n[limits]\naddresses = ["ten"]\n[count]\nadapter = "x"',
            "IP address or network",
        ),
        ("ports = [", "not valid TOML"),
        ("\0", "binary"),
    ],
)
def test_an_error_in_the_file_of_a_device_is_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "tor.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as found:
        load_device(file)
    assert sentence in str(found.value)
    assert str(file) in str(found.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('ports = ["p1"]\n[configure]\nadapter = "memroy"', 'did you mean "memory"?'),
        ('ports = ["p1"]\n[configure]\nadapter = "counter"', "reads counters alone"),
        ('ports = ["p1"]\n[configure]\nadapter = "elsewhere"', "package no_such_package"),
        ('ports = ["p1"]\n[count]\nadapter = "memory"\ntimeuot = "1 s"', 'unknown key "timeuot"'),
        ('ports = ["p1"]\n[count]\nadapter = "memory"\ntimeout = 5', "count"),
    ],
)
def test_an_unknown_adapter_is_a_sentence(device, tmp_path, text, sentence):
    with pytest.raises(ScenarioError) as found:
        DeviceUnderTest(rack(tmp_path, text))
    assert sentence in str(found.value)


def test_a_device_may_be_set_alone_or_counted_alone_or_by_no_default(device, tmp_path):
    file = rack(tmp_path).measure.device
    plain = load("lab-rack", {"measure.lab": "none", "measure.device": file})
    with DeviceUnderTest(plain):
        assert limits(device) == {"p1": 1000, "p2": 1000}
    assert not [each for each in device.orders if each.startswith("apply")]
    with DeviceUnderTest(rack(tmp_path, 'ports = ["p1"]\n[configure]\nadapter = "memory"')) as at:
        assert limits(device) == {"p1": 50_000, "p2": 1000}
        assert at.begin() == at.read() == {}
    with DeviceUnderTest(rack(tmp_path, 'ports = ["p1"]\n[count]\nadapter = "counter"')) as at:
        assert limits(device) == {"p1": 1000, "p2": 1000}
        assert set(at.read()) == set(PORTS)


def test_limits_hold_sources_to_a_rate_and_units_to_addresses(device, tmp_path):
    text = FILE + '[limits]\nrate = "96 Mb/s"\naddresses = ["10.1.0.0/16", "fd00::/64"]\n'
    allowed = {"measure__pacing": "2 Mb/s", "measure__network": "10.1.3.0/24"}
    assert DeviceUnderTest(rack(tmp_path, text, **allowed))
    for wrong in (
        {"measure__pacing": "0 b/s"},
        {"measure__pacing": "3 Mb/s"},
        {"measure__network": ""},
        {"measure__network": "10.0.0.0/8"},
        {"measure__network": "fd00::/48"},
    ):
        with pytest.raises(ScenarioError, match=r"limits\.(rate|addresses)"):
            DeviceUnderTest(rack(tmp_path, text, **allowed | wrong))
    assert device.orders == []


def test_credentials_are_of_the_environment_or_of_a_private_file(tmp_path):
    given = {"DAQLOOM_DEVICE_USER": "daq", "DAQLOOM_DEVICE_PASSWORD": "hush", "USER": "other"}
    found = credentials_of(None, given)
    assert found == Credentials("daq", "hush")
    assert "hush" not in repr(found)
    assert found.without_secrets("login hush refused") == "login *** refused"
    file = tmp_path / "credentials"
    file.write_text('user = "daq"\ntoken = "quiet"\n')
    file.chmod(0o600)
    assert credentials_of(file, given) == Credentials("daq", token="quiet")
    file.chmod(0o640)
    with pytest.raises(ScenarioError, match="readable by other users"):
        credentials_of(file)
    file.chmod(0o600)
    for text in ('password = quiet"', 'password = 5\nx = "quiet"', 'passwort = "quiet"'):
        file.write_text(text)
        with pytest.raises(ScenarioError, match="credentials: ") as refused:
            credentials_of(file)
        assert "quiet" not in str(refused.value)
    os.mkfifo(tmp_path / "fifo", 0o600)
    for other in ("none", "fifo", "a\0b"):
        with pytest.raises(ScenarioError, match="credentials: "):
            credentials_of(tmp_path / other)


def test_credentials_of_another_user_are_not_taken(tmp_path):
    if os.getuid():
        pytest.skip("a file can be given to another user by root alone")
    file = tmp_path / "credentials"
    file.write_text('token = "quiet"')
    file.chmod(0o600)
    os.chown(file, 1234, 1234)
    with pytest.raises(ScenarioError, match=r"belongs to another user \(number 1234\)"):
        credentials_of(file)


def test_the_reference_page_is_that_of_the_adapters():
    from daqloom.device.reference import reference

    page = ROOT / "docs" / "reference" / "device.md"
    assert page.read_text() == reference()


def test_a_dry_run_of_a_laboratory_prints_its_commands():
    scenario = load("lab-pair")
    lines = list(dry_run(scenario))
    units = scenario.readout.units + scenario.builders.units
    assert sum("daqloom unit" in line for line in lines) == units
    assert sum(line.startswith("# in that of ") for line in lines) == 1 + units
    links = [line for line in lines if line.startswith("ip link add name ") and "veth" in line]
    queues = [line for line in lines if line.startswith("tc qdisc add dev ") and "fifo" in line]
    assert len(queues) == 2 * len(links), "both ends of each cable"
    assert all(line.isprintable() for line in lines)

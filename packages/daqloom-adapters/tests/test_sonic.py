"""Tests of a SONiC switch: the contents of its configuration database, and its faults."""

import copy
import json

import pytest

from daqloom.device.adapter import PortBuffer
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters.sonic import Sonic
from support.adapter_conformance import check_configures, check_refuses, check_refuses_entry
from support.fake_gnmi import CREDENTIALS, PASSWORD, FakeGnmi, trusted

PORTS = ("Ethernet0", "Ethernet4")

CONFIG = {
    "PORT": {name: {"admin_status": "up", "lanes": "1,2"} for name in (*PORTS, "Ethernet8")},
    "BUFFER_POOL": {
        "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "9243812"},
        "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "15982720"},
    },
    "BUFFER_PROFILE": {
        "lossy": {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"},
        "lossless": {"pool": "egress_lossless_pool", "size": "0", "static_th": "3995680"},
    },
    "BUFFER_QUEUE": {
        "Ethernet0|0": {"profile": "lossy"},
        "Ethernet0|3-4": {"profile": "lossless"},
        "Ethernet4|0": {"profile": "lossy"},
        "Ethernet8|0": {"profile": "lossy"},
    },
    "QUEUE": {"Ethernet0|0": {"scheduler": "s0"}, "Ethernet0|3": {"wred_profile": "AZURE"}},
    "WRED_PROFILE": {
        "AZURE": {
            "ecn": "ecn_all",
            "wred_green_enable": "true",
            "green_min_threshold": "1048576",
            "green_max_threshold": "2097152",
        }
    },
}
"""Contents of a short config_db.json, the configuration file of SONiC."""


@pytest.fixture
def switch():
    with FakeGnmi({"CONFIG_DB": copy.deepcopy(CONFIG)}) as fake:
        yield fake


@pytest.fixture
def sonic(switch, tmp_path):
    """Return a function that makes an adapter of the test switch."""
    authority = trusted(tmp_path)

    def make(ports=PORTS, **keys):
        keys = {"address": switch.address, "ca": authority, "timeout": "30 s"} | keys
        return Sonic(build(Sonic.Options, keys, "file"), ports, CREDENTIALS)

    return make


@pytest.mark.parametrize(
    "wanted",
    [
        PortBuffer(alpha=0.5),
        PortBuffer(limit_bytes=200_000, reserved_bytes=3000, ecn_bytes=50_000),
        PortBuffer(shared_bytes=4_000_000, alpha=8.0),
        PortBuffer(ecn_bytes=1),
    ],
)
def test_it_sets_reads_back_and_restores(sonic, switch, wanted):
    check_configures(sonic(), wanted)
    assert switch.config == CONFIG


def test_the_switch_has_copies_of_the_profiles_with_the_settings(sonic, switch):
    wanted = PortBuffer(alpha=0.25, reserved_bytes=0, shared_bytes=5000, ecn_bytes=70_000)
    with sonic() as adapter:
        adapter.apply(wanted)
        assert adapter.applied() == dict.fromkeys(PORTS, wanted)
    expected = copy.deepcopy(CONFIG)
    expected["BUFFER_POOL"]["egress_lossy_pool"]["size"] = "5000"
    expected["BUFFER_PROFILE"]["daqloom_lossy"] = {
        "pool": "egress_lossy_pool",
        "size": "0",
        "dynamic_th": "-2",
    }
    for port in PORTS:
        expected["BUFFER_QUEUE"][f"{port}|0"] = {"profile": "daqloom_lossy"}
    expected["QUEUE"]["Ethernet0|0"] = {"scheduler": "s0", "wred_profile": "daqloom"}
    expected["QUEUE"]["Ethernet4|0"] = {"wred_profile": "daqloom"}
    expected["WRED_PROFILE"]["daqloom"] = {"ecn": "ecn_all"} | {
        f"{colour}_{end}_threshold": "70000"
        for colour in ("green", "yellow", "red")
        for end in ("min", "max")
    }
    for colour in ("green", "yellow", "red"):
        expected["WRED_PROFILE"]["daqloom"] |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_drop_probability": "100",
        }
    assert switch.config == expected
    assert len(switch.sets) == 1


def test_a_plan_has_the_steps_in_the_words_of_gnmi(sonic):
    with sonic(ports=PORTS[:1]) as adapter:
        assert adapter.plan(PortBuffer(limit_bytes=9000)) == [
            'update /sonic-db:CONFIG_DB/localhost/BUFFER_PROFILE/daqloom_lossy {"pool": '
            '"egress_lossy_pool", "size": "1518", "static_th": "9000"}',
            "replace /sonic-db:CONFIG_DB/localhost/BUFFER_QUEUE/Ethernet0|0/profile "
            '"daqloom_lossy"',
        ]


def test_equal_settings_are_not_sent_again_and_ignored_ones_are_detected(sonic, switch):
    with sonic() as adapter:
        adapter.apply(PortBuffer(alpha=2.0))
        adapter.apply(PortBuffer(alpha=2.0))
        assert len(switch.sets) == 1
        switch.fault = "ignores"
        adapter.apply(PortBuffer(alpha=1.0))
        assert adapter.applied()["Ethernet0"].alpha == 2.0


def test_another_process_restores_a_switch_that_had_no_profiles_of_its_queues(sonic, switch):
    for table in ("BUFFER_PROFILE", "BUFFER_QUEUE", "QUEUE", "WRED_PROFILE"):
        del switch.config[table]
    before = copy.deepcopy(switch.config)
    with sonic() as adapter:
        assert adapter.applied()["Ethernet0"] == PortBuffer(shared_bytes=9243812, ecn_bytes=0)
        saved = json.dumps(adapter.save())
        adapter.apply(PortBuffer(limit_bytes=1000, ecn_bytes=500))
        assert switch.config["BUFFER_PROFILE"]["daqloom"]["static_th"] == "1000"
    with sonic() as adapter:
        adapter.restore(json.loads(saved))
    assert switch.config == before


def test_rows_within_the_queues_are_bound_and_those_that_miss_are_made(sonic, switch):
    with sonic(ports=PORTS[:1], queues="2-4", pool="egress_lossless_pool") as adapter:
        saved = adapter.save()
        adapter.apply(PortBuffer(limit_bytes=5, ecn_bytes=0))
        assert adapter.applied()["Ethernet0"].limit_bytes == 5
        assert switch.config["BUFFER_QUEUE"]["Ethernet0|2"] == {"profile": "daqloom"}
        assert switch.config["BUFFER_QUEUE"]["Ethernet0|3-4"] == {"profile": "daqloom_lossless"}
        assert "Ethernet0|3" not in switch.config["QUEUE"]
        adapter.restore(saved)
    assert switch.config == CONFIG


def test_a_pool_without_a_size_is_without_one_again(sonic, switch):
    del switch.config["BUFFER_POOL"]["egress_lossy_pool"]["size"]
    before = copy.deepcopy(switch.config)
    with sonic() as adapter:
        saved = adapter.save()
        assert adapter.applied()["Ethernet0"].shared_bytes is None
        adapter.apply(PortBuffer(shared_bytes=77))
        assert adapter.applied()["Ethernet0"].shared_bytes == 77
        adapter.restore(saved)
    assert switch.config == before


def test_profiles_that_are_still_there_from_a_run_before_are_used_and_left(sonic, switch):
    with sonic() as adapter:
        adapter.apply(PortBuffer(alpha=1.0, ecn_bytes=5))
        before = copy.deepcopy(switch.config)
        saved = adapter.save()
        adapter.apply(PortBuffer(limit_bytes=4000, ecn_bytes=6))
        assert switch.config["BUFFER_PROFILE"].keys() == {"lossy", "lossless", "daqloom_lossy"}
        adapter.restore(saved)
    assert switch.config == before


def test_ports_of_one_profile_share_its_copy_and_others_have_their_own(sonic, switch):
    switch.config["BUFFER_PROFILE"]["big"] = {"pool": "egress_lossy_pool", "size": "9"} | {
        "static_th": "90"
    }
    switch.config["BUFFER_QUEUE"]["Ethernet4|0"] = {"profile": "big"}
    with sonic((*PORTS, "Ethernet8")) as adapter:
        adapter.apply(PortBuffer(alpha=1.0))
        assert {port: found.reserved_bytes for port, found in adapter.applied().items()} == {
            "Ethernet0": 1518,
            "Ethernet4": 9,
            "Ethernet8": 1518,
        }


def test_settings_that_differ_between_queues_are_left_out(sonic, switch):
    with sonic(ports=PORTS[:1], queues="0-3") as adapter:
        assert adapter.applied()["Ethernet0"] == PortBuffer(shared_bytes=9243812)
    switch.config["QUEUE"]["Ethernet0|3"]["wred_profile"] = "daqloom"
    switch.config["WRED_PROFILE"]["daqloom"] = {"ecn": "ecn_none"}
    with sonic(ports=PORTS[:1], queues="0-3") as adapter:
        assert adapter.applied()["Ethernet0"].ecn_bytes == 0


def test_a_row_that_holds_other_queues_too_is_left_alone(sonic, switch):
    with sonic(ports=PORTS[:1], queues="3", pool="egress_lossless_pool") as adapter:
        assert adapter.applied()["Ethernet0"].limit_bytes == 3995680
        sentence = check_refuses(lambda: adapter.apply(PortBuffer(limit_bytes=5)))
        assert "BUFFER_QUEUE|Ethernet0|3-4, which holds more" in sentence
        assert 'expected queues = "3-4"' in sentence
        adapter.apply(PortBuffer(ecn_bytes=9))
        adapter.restore(adapter.save())
    assert switch.config["BUFFER_QUEUE"] == CONFIG["BUFFER_QUEUE"]


@pytest.mark.parametrize(
    ("queues", "profile", "wanted", "reason"),
    [
        ("0", "lossy", PortBuffer(alpha=1.0, limit_bytes=5), "limit_bytes or alpha, not both"),
        ("0", "[BUFFER_PROFILE|lossy]", PortBuffer(alpha=1.0), "expected the plain name"),
        ("1", "lossy", PortBuffer(reserved_bytes=5), "expected alpha or limit_bytes"),
        ("3-4", "lossy", PortBuffer(alpha=1.0), "in the pool egress_lossless_pool"),
    ],
    ids=["two thresholds", "unknown profile", "no profile", "another pool"],
)
def test_a_profile_that_cannot_be_copied_is_refused(sonic, switch, queues, profile, wanted, reason):
    switch.config["BUFFER_QUEUE"]["Ethernet0|0"] = {"profile": profile}
    with sonic(ports=PORTS[:1], queues=queues) as adapter:
        assert reason in check_refuses(lambda: adapter.apply(wanted))


@pytest.mark.parametrize(
    ("alpha", "nearest"),
    [
        (0.3, "0.25 and 0.5"),
        (3.0, "2 and 4"),
        (1000.0, "64 and 128"),
        (0.001, "0.00390625 and 0.0078125"),
        (0.0, "0.00390625 and 0.0078125"),
    ],
)
def test_an_alpha_that_is_no_power_of_two_is_refused_with_the_nearest(sonic, alpha, nearest):
    with sonic() as adapter:
        assert nearest in check_refuses(lambda: adapter.plan(PortBuffer(alpha=alpha)))


def test_an_unknown_port_and_an_unknown_pool_are_named_with_known_ones(sonic):
    sentence = check_refuses_entry(sonic(ports=("Ethernet9",)))
    assert 'no port "Ethernet9"; did you mean "Ethernet' in sentence
    sentence = check_refuses_entry(sonic(ports=("swp1",)))
    assert "known are Ethernet0, Ethernet4, Ethernet8" in sentence
    sentence = check_refuses_entry(sonic(pool="pool"))
    assert 'no buffer pool "pool"' in sentence


def test_a_refusal_of_the_switch_is_quoted(sonic, switch):
    switch.refuses = f"Failed to apply patch:\n\x1b[31mModification is illegal\x1b[0m {PASSWORD}"
    with sonic() as adapter:
        sentence = check_refuses(lambda: adapter.apply(PortBuffer(alpha=1.0)), PASSWORD)
        assert "refuses Set: Failed to apply patch: \\x1b[31mModification is illegal" in sentence
        assert sentence.isprintable()
    assert switch.config == CONFIG


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("PORT", ["Ethernet0"]),
        ("QUEUE", {"Ethernet0|0": "scheduler"}),
        ("QUEUE", {"Ethernet0|0": {"scheduler": 5}}),
        ("BUFFER_QUEUE", {"a/b": {"profile": "lossy"}}),
        ("BUFFER_PROFILE", {"lossy": {"pool": "egress_lossy_pool", "size": "x" * 10_000}}),
    ],
)
def test_a_table_that_is_none_is_refused(sonic, switch, table, rows):
    switch.config[table] = rows
    assert f"invalid table {table}" in check_refuses_entry(sonic())


@pytest.mark.parametrize("field", ["size", "dynamic_th"])
@pytest.mark.parametrize("value", ["many", "1.5", "9" * 30, "²"])
def test_a_field_that_is_no_number_is_refused(sonic, switch, field, value):
    switch.config["BUFFER_PROFILE"]["lossy"][field] = value
    with sonic() as adapter:
        assert f"as {field}; expected a whole number" in check_refuses(adapter.applied)


def test_a_power_of_two_out_of_range_is_refused(sonic, switch):
    switch.config["BUFFER_PROFILE"]["lossy"]["dynamic_th"] = "2000"
    with sonic() as adapter:
        assert "expected a whole number from -8 to 7" in check_refuses(adapter.applied)


@pytest.mark.parametrize(
    "saved", [{"PORT": {}}, {"QUEUE": {"Ethernet0|0": 5}}, {"QUEUE": {"../x": None}}, {"QUEUE": []}]
)
def test_a_damaged_saved_state_is_refused(sonic, switch, saved):
    with sonic() as adapter:
        assert "saved state is damaged" in check_refuses(lambda: adapter.restore(saved))
    assert switch.config == CONFIG


@pytest.mark.parametrize(
    "keys",
    [
        {"address": "tor1:8080", "queues": "5-2"},
        {"address": "tor1:8080", "queues": "16"},
        {"address": "tor1:8080", "pool": "a/b"},
    ],
)
def test_keys_that_are_wrong_are_refused_before_anything_is_sent(keys):
    with pytest.raises(ScenarioError):
        build(Sonic.Options, keys, "file")


def test_its_identity_is_its_base_mac_address_by_whichever_name_it_is_reached(switch, sonic):
    def identity(**keys):
        with sonic(**keys) as adapter:
            return adapter.identity()

    port = switch.address.rpartition(":")[2]
    other = {"address": f"localhost:{port}", "server_name": "127.0.0.1", "queues": "0-2"}
    assert identity() == identity(**other) == f"address 127.0.0.1 port {port}"
    switch.config["DEVICE_METADATA"] = {"localhost": {"mac": "B8:6A:97:00:00:01", "type": "ToR"}}
    assert identity() == identity(**other) == "mac b8:6a:97:00:00:01"

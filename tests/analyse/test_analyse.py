"""The closed forms of whole scenarios, each number derived here by hand."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import daqloom
import daqloom.scenario
from daqloom.analyse.answer import first_failing
from daqloom.analyse.bottleneck import bandwidth_delay, incast
from daqloom.analyse.system import framing
from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.study.methods import methods
from support.imports import imported


def atlas(*overrides: str) -> Result:
    return methods.analyse(load("atlas-lab", overrides))


def peak(result: Result, formula: str) -> Any:
    return result.analysis[formula]["value_bytes"]


def test_the_published_numbers_come_out_without_overhead() -> None:
    at_target = atlas("transport.overhead=false", "event.size=5 MB", "event.rate=12 kHz")
    assert peak(at_target, "exact") == pytest.approx(47.5e6)
    assert peak(at_target, "published") == pytest.approx(47.03125e6)
    assert at_target.metric("buffer_peak_bytes.tor") == peak(at_target, "exact")

    at_low_load = atlas("transport.overhead=false", "event.size=1 MB", "event.rate=1 kHz")
    assert peak(at_low_load, "published") == pytest.approx(-1.1875e6)
    assert peak(at_low_load, "exact") == pytest.approx(0.96875e6)


def test_overhead_makes_the_event_larger_and_the_links_slower() -> None:
    # 5 MB over 48 sources: 104 167 B each, 72 segments of at most 1448 B (1500 - 52).
    # 48·72 = 3456 packets with 52 + 18 B of headers: 241 920 B more than the payload.
    # A mean frame is 5 241 920/3456 = 1516.76 B and takes 20 B more of the wire.
    overhead = atlas().analysis["overhead"]
    assert overhead["packets"] == 3456
    assert overhead["event_frame_bytes"] == 5_241_920
    assert overhead["wire_share"] == pytest.approx(1516.7593 / 1536.7593)

    # h = 5.24192 MB·775/800 = 5.07811 MB; a builder drains 25 Gb/s·0.98699/12 kHz = 257 027 B.
    # 5.07811/0.257027 = 19.76, so 20 events: 20·5.07811 - 190·0.257027 = 52.727 MB.
    assert peak(atlas(), "exact") == pytest.approx(52.727e6, rel=1e-4)


def test_overhead_depends_on_segments_and_timestamps() -> None:
    # 104 167 B in segments of 8960 B: 12 packets of 40 + 18 B headers from each of 48 sources.
    overhead = atlas("network.mtu=9000 B", "transport.timestamps=false").analysis["overhead"]
    assert overhead["packets"] == 48 * 12
    assert overhead["event_frame_bytes"] == 5_000_000 + 48 * 12 * 58
    assert framing(14_480, 1448, 52, overhead=True).packets == 10
    assert framing(14_481, 1448, 52, overhead=True).packets == 11
    assert framing(14_480, 1448, 52, overhead=True).frame_bytes == 10 * 1518


def test_the_rate_is_bounded_by_the_first_part_that_is_full() -> None:
    # Without headers 800 Gb/s carry 20 kHz of 5 MB, and so do 32 links of 25 Gb/s.
    free = "transport.overhead=false"
    assert atlas(free).metric("event_rate_bound_hz") == pytest.approx(20e3)
    assert atlas(free, "builders.units=8").metric("event_rate_bound_hz") == pytest.approx(5e3)
    # 48 sources of 10 Gb/s: 104 167 B each take 83.33 µs, 12 kHz.
    slow = atlas(free, "network.links.source.rate=10 Gb/s")
    assert slow.metric("event_rate_bound_hz") == pytest.approx(12e3, rel=1e-4)
    # A builder handles 96 messages an event: 32 builders at 10 µs each reach 33.3 kHz; at 30 µs
    # each 11.1 kHz.
    busy = atlas(free, "builders.message_cost=30 us")
    assert busy.metric("event_rate_bound_hz") == pytest.approx(32 / (96 * 30e-6))
    assert busy.metric("collection_latency_s.min") is None


def test_the_unloaded_latency_is_the_way_there_and_the_drain() -> None:
    # A request of 100 + 52 B is 190 B on the wire; to a source it takes 3 µs of delay and
    # 190·8·(1/25 + 1/800 + 1/100) ns = 77.9 ns. The first frame of the reply (1516.76 + 20 B on
    # average) reaches the ToR after 2 µs and 1536.76·8·(1/100 + 1/800) ns = 138.3 ns. The event,
    # (5 241 920 + 3456·20)·8 bits, drains at 25 Gb/s within 1699.533 µs, and 1 µs of cable is left.
    expected = 3e-6 + 77.9e-9 + 2e-6 + 138.3e-9 + 1699.533e-6 + 1e-6
    assert atlas().metric("collection_latency_s.min") == pytest.approx(expected, rel=1e-6)


def test_failing_conditions_and_effects_outside_the_formulas_are_reported() -> None:
    crowded = atlas("event.rate=16 kHz", "builders.units=20")
    assert crowded.analysis["exact"]["valid"] is False
    assert crowded.analysis["exact"]["failing"] == "overlapping events ≤ builders"
    assert any(w.startswith("analysis.exact: ") for w in crowded.warnings)
    assert atlas("event.rate=19 kHz").analysis["exact"]["failing"] == "f·S < I"
    assert "failing" not in atlas().analysis["exact"]
    window = "transport.static_window=200 kB"
    plain = atlas("event.arrivals=deterministic", "transport.congestion=static", window)
    assert [w for w in plain.warnings if not w.startswith("analysis.")] == []
    chance = ("event.arrivals=poisson", "event.size_distribution=gamma")
    credited = ("building.assignment=random", "building.outstanding_fragments=10")
    links = ("network.links.uplink.count=8", "readout.response.kind=exponential")
    for key in (*chance, *credited, *links):
        assert any(key.split("=")[0] in warning for warning in atlas(key).warnings), key
    assert any("expect drops" in w for w in atlas("network.switch.tor.model=qfx5120-48y").warnings)
    deep = atlas("network.switch.tor.model=acx7100-48l")
    assert not any("expect drops" in warning for warning in deep.warnings)


def test_the_bandwidth_delay_rule_is_for_flows_that_outlive_their_first_window() -> None:
    # 25 Gb/s·100 µs = 312.5 kB a port.
    rule = bandwidth_delay(100e-6, 25e9, ports=32, first_windows_bytes=600e3)
    assert rule.per_port_bytes == pytest.approx(312.5e3)
    assert rule.switch_bytes == pytest.approx(10e6)
    assert first_failing(rule.conditions) is None
    failing = first_failing(bandwidth_delay(100e-6, 25e9, 32, 700e3).conditions)
    assert failing.name == "first windows ≤ BDP + buffer"


def test_the_incast_rule_asks_for_the_windows_less_the_pipe() -> None:
    # 20 windows of 64 kB are 1280 kB; 1 Gb/s·200 µs hold 25 kB.
    rule = incast([64e3] * 20, input_bps=20e9, output_bps=1e9, rtt_s=200e-6)
    assert rule.needed_bytes == pytest.approx(1255e3)
    assert rule.satisfied_by(1255e3)
    assert not rule.satisfied_by(1255e3 - 1)
    assert first_failing(rule.conditions) is None
    assert first_failing(incast([64e3], 1e9, 10e9, 1e-3).conditions) is not None
    rack = methods.analyse(load("incast-rack"))
    rule = rack.analysis["incast"]
    margin = rule["bdp_bytes"] + rule["buffer_bytes"] - rule["windows_bytes"]
    assert rack.metric("incast_margin_bytes") == pytest.approx(margin)
    assert margin < 0
    assert atlas().metric("incast_margin_bytes") is None


def test_a_port_of_a_shared_memory_takes_its_share_of_the_pool() -> None:
    # Alone, a port grows until it holds alpha times what is free: half of the 27 MB with alpha 1,
    # besides its 1/56 of 5 MB. A frame of 1516.76 B and 64 B of metadata take 7 cells of 256 B.
    shallow = atlas("network.switch.tor.model=qfx5120-48y").analysis["incast"]
    expected = (27e6 / 2 + 5e6 / 56) * 1516.7593 / (7 * 256)
    assert shallow["buffer_bytes"] == pytest.approx(expected)
    assert shallow["satisfied"] is False
    assert "buffer_bytes" not in atlas().analysis["incast"]
    assert atlas("network.switch.tor.model=acx7100-48l").analysis["incast"]["satisfied"] is True


def test_windows_and_requests_limit_the_bytes_in_flight() -> None:
    # A window of 14 480 B holds ten frames of 1518 B; 48 sources.
    small = atlas("transport.congestion=static", "transport.static_window=14480 B")
    assert small.analysis["incast"]["windows_bytes"] == 48 * 10 * 1518

    # 8 of 64 fragments of 31 250 B: 22 frames each, 31 250 B and 22 headers of 52 + 18 B.
    def rack(**changes: object) -> Result:
        keys = {key.replace("__", "."): value for key, value in changes.items()}
        return methods.analyse(load("incast-rack", keys))

    fragment = 31_250 + 22 * 70
    assert rack().analysis["incast"]["windows_bytes"] == 64 * fragment
    credited = rack(building__outstanding_fragments=8)
    assert credited.analysis["incast"]["windows_bytes"] == 8 * fragment
    # More credits than fragments change nothing; windows of two frames hold less than the credits.
    many = rack(building__outstanding_fragments=100)
    assert many.analysis["incast"]["windows_bytes"] == 64 * fragment
    small = {"transport__congestion": "static", "transport__static_window": "2896 B"}
    both = rack(building__outstanding_fragments=8, **small)
    assert both.analysis["incast"]["windows_bytes"] == 8 * 2 * 1518


@pytest.mark.parametrize("name", ["atlas-lab", "atlas-hllhc", "small-rack"])
def test_every_preset_is_analysed(name: str) -> None:
    result = methods.analyse(load(name))
    assert result.method == "analyse"
    assert result.seed is None
    assert Result.from_json(result.to_json()).to_dict() == result.to_dict()


RATE = st.integers(10**6, 10**15).map("{} b/s".format)
SWITCHES = ["infinite", "qfx5120-48y", "acx7100-48l", "shared-memory", "voq"]
KEYS = {
    "event.size": st.integers(1, 10**13).map("{} B".format),
    "event.rate": st.floats(1e-3, 1e9).map("{!r} Hz".format),
    "readout.units": st.integers(1, 3000),
    "builders.units": st.integers(1, 1000),
    "network.links.source.rate": RATE,
    "network.links.uplink.rate": RATE,
    "network.links.access.rate": RATE,
    "network.links.access.delay": st.floats(0, 1e3).map("{!r} s".format),
    "network.mtu": st.integers(576, 65_535).map("{} B".format),
    "network.switch.tor.model": st.sampled_from(SWITCHES),
    "transport.congestion": st.sampled_from(["static", "cubic"]),
    "transport.overhead": st.booleans(),
}


@given(st.fixed_dictionaries(KEYS))
def test_no_scenario_that_can_be_loaded_is_beyond_the_formulas(keys) -> None:
    try:
        scenario = load("atlas-lab", keys)
    except daqloom.scenario.ScenarioError:
        assume(False)
    result = methods.analyse(scenario)
    held = result.metric("buffer_peak_bytes.tor")
    assert held >= 0
    # The published formula applies only near the exact one, and no rate that the input carries
    # needs more than events back to back.
    exact, loaded = result.analysis["exact"], result.analysis["back_to_back"]
    if result.analysis["published"]["valid"]:
        assert result.analysis["published"]["value_bytes"] == pytest.approx(held, rel=0.05)
    if exact.get("failing") != "f·S < I":
        assert held <= loaded["value_bytes"] * (1 + 1e-9)
    assert all(("failing" in form) != form["valid"] for form in (exact, loaded))
    assert Result.from_json(result.to_json()).to_dict() == result.to_dict()


@pytest.mark.process
def test_analysing_leaves_the_heavy_libraries_alone() -> None:
    heavy = {"numpy", "scipy", "xarray", "pandas", "networkx", "matplotlib", "plotly"}
    heavy |= {"distributed", "grpc"}
    assert not heavy & imported("import daqloom; daqloom.load('atlas-lab').analyse().to_json()")

"""How long a simulation lasts where its file does not say."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.analyse.resonance import TOLERANCE
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario, to_toml
from daqloom.simulate.fabric_rates import APART
from daqloom.study.methods import methods
from support.small_fabrics import INFINIBAND, SMALL, metrics

TREE = {key: value for key, value in SMALL.items() if not key.startswith("run.")}
"""Four nodes that push 100 full packets to each other, for as long as it is usual."""
ROUND_S = 3 * (100 * (4096 + 26) + 16 + 4) * 8 / 200e9
"""At least: three of four phases are writes over a link."""


def test_a_fabric_is_simulated_for_a_round_and_twenty_more_or_fewer() -> None:
    run = override(INFINIBAND, TREE).run
    # In each of four phases a write and its acknowledge, and four messages of a tournament of two
    # levels, cross three switches of 130 ns and four cables of 170 ns each.
    messages_s = 4 * 6 * (3 * 130e-9 + 4 * 170e-9)
    assert run.warmup == pytest.approx(ROUND_S + messages_s, rel=0.01)
    assert run.duration == pytest.approx(21 * run.warmup, rel=0.01)
    slow = override(INFINIBAND, TREE | {"event.rate": "1 MHz"}).run
    # Four builder units and 4096 events in a packet: 16.4 ms until a first round is there.
    filled_s = 4 * 4096 / 1e6
    assert slow.warmup == pytest.approx(2 * filled_s, rel=0.01)
    assert slow.duration == pytest.approx(22 * filled_s, rel=0.01)
    # 360 nodes with three streams of 4 MB: 360 · 360 · 3 · 975 packets in a round are 380 million.
    run = INFINIBAND.run
    round_s = 360 * 3 * 133 * 30_000 * 8 / 200e9
    assert run.duration < 0.05 * round_s
    assert override(INFINIBAND, {"network.switch.radix": 2}).run.duration > 0


def test_a_larger_packet_takes_longer_and_a_faster_link_less() -> None:
    changes = ({}, {"event.packing": 40_960}, {"network.links.rate": "400 Gb/s"})
    usual, larger, faster = (override(INFINIBAND, TREE | each).run.duration for each in changes)
    # Ten times the time of writes, and half of it; that of messages stays.
    assert 6 * usual < larger < 10 * usual
    assert usual / 2 < faster < usual


def test_a_rack_is_simulated_for_two_thousand_events_of_each_builder() -> None:
    rack = {"event.rate": "1 kHz", "event.size": "100 kB", "builders.units": 4}
    run = override(Scenario(), rack).run
    assert (run.warmup, run.duration) == (400 * 4 / 1000, 2000 * 4 / 1000)
    # Large events are fewer: 200 million packets of 1448 B payload, 5 MB in each event.
    large = override(Scenario(), rack | {"event.size": "500 MB"}).run
    assert large.duration == pytest.approx(2e8 / (1000 * 500e6 / 1448), rel=0.01)
    assert large.warmup == pytest.approx(large.duration / 5, rel=0.01)


@pytest.mark.parametrize(("given", "share"), [("0.4 ms", 1 / 21), ("100 ms", None)])
def test_a_duration_that_is_given_is_kept(given: str, share: float | None) -> None:
    run = override(INFINIBAND, TREE | {"run.duration": given}).run
    usual = override(INFINIBAND, TREE).run
    assert run.duration == pytest.approx(float(given.split()[0]) / 1e3)
    wanted_s = usual.warmup if share is None else share * run.duration
    assert run.warmup == pytest.approx(wanted_s, rel=0.01)


def test_a_given_warm_up_is_kept_and_a_shown_scenario_has_the_lengths(tmp_path: Path) -> None:
    usual = override(INFINIBAND, TREE).run
    run = override(INFINIBAND, TREE | {"run.warmup": "30 ms"}).run
    assert run.warmup == 0.03
    assert run.duration == pytest.approx(0.03 + usual.duration - usual.warmup, rel=0.01)
    scenario = override(INFINIBAND, TREE)
    shown = tmp_path / "shown.toml"
    shown.write_text(to_toml(scenario))
    assert load(shown).run == scenario.run
    assert load(shown).hash() == scenario.hash()
    larger = override(scenario, {"event.packing": 40_960})
    assert larger.run.duration > 6 * scenario.run.duration


FLOWS = {"building.protocol": "none", "flows.a.source": 0, "flows.a.destination": 1}


def test_flows_are_simulated_for_a_thousand_messages() -> None:
    base = override(override(INFINIBAND, TREE), FLOWS | {"flows.a.interval": "2 us"})
    assert base.run.duration == pytest.approx(1.1 * 1000 * 2e-6, rel=0.05)
    late = override(base, {"flows.a.start": "1 s"})
    assert late.run.duration > 1.002
    few = override(base, {"flows.a.messages": 3})
    assert few.run.warmup == 0  # all of them count
    assert metrics(methods.simulate(few))["flow_messages.a"] == 3


SHIFTED = {
    "building.protocol": st.just("shift"),
    "building.barrier": st.sampled_from(["tournament", "centralised", "none"]),
    "building.meps_per_phase": st.integers(1, 2),
}
PIPED = {
    "building.protocol": st.just("daqpipe"),
    "building.credits": st.integers(1, 4),
    "building.mode": st.sampled_from(["pull", "push"]),
}
SIZES = {
    "network.hosts_per_leaf": st.integers(1, 4),
    "network.leaves": st.integers(1, 3),
    "network.spines": st.integers(1, 3),
    "network.switch.radix": st.just(8),
    "network.links.rate": st.sampled_from(["100 Gb/s", "200 Gb/s"]),
    "event.packing": st.integers(1, 8000),
    "event.fragment_sizes": st.sampled_from(["fixed", "poisson"]),
    "event.rate": st.sampled_from(["0 Hz", "2 MHz", "20 MHz"]),
    "readout.streams": st.integers(1, 3),
    "hosts.message_cost": st.sampled_from(["0 s", "800 ns"]),
}
FABRICS = st.fixed_dictionaries(SIZES | SHIFTED) | st.fixed_dictionaries(SIZES | PIPED)
SEVERAL = FABRICS.filter(lambda keys: keys["network.leaves"] * keys["network.hosts_per_leaf"] > 1)


@settings(max_examples=40, deadline=None)
@given(SEVERAL)
def test_a_run_of_usual_length_builds_events_and_stays_below_its_bound(keys) -> None:
    scenario = override(INFINIBAND, TREE | keys)
    result = methods.simulate(scenario, seed=1)
    found = metrics(result)
    bound_hz = metrics(methods.analyse(scenario))["event_rate_bound_hz"]
    assert found["events_built"] > 0
    for name in ("event_rate_hz", "written_event_rate_hz"):
        if found[name] > (1 + TOLERANCE) * bound_hz:
            assert any(warning.startswith(f"{name} = ") for warning in result.warnings)
    built, written = found["event_rate_hz"], found["written_event_rate_hz"]
    assert result.warnings or abs(built - written) <= APART * written


@pytest.mark.parametrize("protocol", ["shift", "daqpipe"])
def test_of_plain_small_fabrics_there_is_nothing_to_warn_of(protocol: str) -> None:
    plain = override(INFINIBAND, TREE | {"building.protocol": protocol})
    result = methods.simulate(plain, seed=1)
    assert result.warnings == []
    assert result.engine["virtual_s"] == plain.run.duration

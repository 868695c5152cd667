"""Effects of assumed values, against numbers by hand and against the simulation."""

import math

import pytest

from daqloom.analyse.system import System
from daqloom.deployment.scenarios import load, override
from daqloom.study.methods import methods
from daqloom.study.methods.assumptions import BOUND, LARGER, PEAK, SMALLER, effects

RATE = "network.links.uplink.rate"
STATIC = {
    # The formula's assumptions: a window takes a whole reply.
    "transport.congestion": "static",
    "transport.static_window": "1 MB",
    "network.links.source.rate": "200 Gb/s",  # the uplink limits
    "run.duration": "1 s",
    "run.warmup": "0 s",
}


@pytest.mark.parametrize("value", ["400 Gb/s", "20 Gb/s"])
def test_the_changed_peak_is_that_of_a_simulation_with_the_other_value(value: str) -> None:
    """Another uplink changes the times at which random events reach the switch, and the peak."""
    rack = load("small-rack", STATIC | {"event.rate": "4 kHz"})
    found = effects(rack, PEAK, {RATE: "40 Gb/s"})
    assert found is not None
    assert found.is_random
    [effect] = found.moving
    results = {change.value: change.result for change in effect.changes}
    simulated = methods.simulate(override(rack, {RATE: value}), seed=1).metric(PEAK)
    assert results[value] == pytest.approx(simulated, rel=0.15)  # other random events
    assert abs(math.log(results[value] / found.base)) > math.log(2)


def test_a_regular_peak_follows_the_height_of_its_triangle() -> None:
    """One event at a time fills the buffer to h = S·(I − O)/I; I is ten times as high, or half."""
    rack = load("small-rack", STATIC | {"event.rate": "100 Hz", "event.arrivals": "deterministic"})
    found = effects(rack, PEAK, {RATE: "given"})
    assert found is not None
    assert not found.is_random
    event = System(rack).triangle
    inputs = [LARGER * event.input_bps, event.input_bps / SMALLER]
    heights = [event.size_bytes * max(0.0, 1 - event.output_bps / each) for each in inputs]
    assert found.base == pytest.approx(event.height_bytes)
    for change, height in zip(found.moving[0].changes, heights, strict=True):
        assert change.result == pytest.approx(height)


def test_too_slow_values_come_first_and_values_without_effect_are_unknown() -> None:
    rack = load("atlas-lab", {"event.rate": "12 kHz"})
    assumed = {"hosts.jitter": "4.0", "network.mtu": "1500 B", RATE: "800 Gb/s"}
    found = effects(rack, PEAK, assumed)
    assert found is not None
    assert [each.key for each in found.moving] == [RATE, "network.mtu"]
    assert found.unknown == {"hosts.jitter": "4.0"}
    assert [(each.value, each.result is None) for each in found.moving[0].changes] == [
        ("8 Tb/s", False),
        ("400 Gb/s", True),  # 12 kHz × 5 MB are 480 Gb/s
    ]
    assert found.moving[0].strength(found.base) == math.inf


def test_names_become_each_other_name_and_a_system_without_closed_form_has_no_effects() -> None:
    rack = load("small-rack", {"event.rate": "2 kHz"})
    found = effects(rack, PEAK, {"event.arrivals": "poisson"})
    assert found is not None
    assert [change.value for change in found.moving[0].changes] == ["deterministic"]
    assert found.moving[0].changes[0].result < found.base
    assert effects(rack, "collection_latency_s.mean", {RATE: "20 Gb/s"}) is None
    bound = effects(rack, BOUND, {RATE: "20 Gb/s"})
    assert bound is not None
    assert bound.moving[0].changes[-1].result < bound.base
    limited = override(rack, STATIC | {"transport.static_window": "3 kB"})
    found = effects(limited, PEAK, {RATE: "20 Gb/s"})
    assert found is None or not found.is_random  # the sum of triangles knows no windows

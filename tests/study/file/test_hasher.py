"""The quick hash of a changed scenario is the hash of the changed scenario."""

import functools
import itertools
import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario, ScenarioError
from daqloom.study.file.hasher import ScenarioHasher

CHOICES: dict[str, list[object]] = {
    "event.rate": ["1 kHz", "12.5 kHz", "1000 Hz"],
    "event.size": ["1 MB", "5 MB", "2500 kB"],
    "event.arrivals": ["poisson", "deterministic"],
    "builders.units": [2, 16, 32],
    "building.assignment": ["round-robin", "random"],
    "network.links.access.rate": ["25 Gb/s", "100 Gb/s"],
    "network.switch.tor.model": ["infinite", "qfx5120-48y", "acx7100-48l"],
    "network.switch.tor.buffer": ["16 MB", "64 MB"],
    "network.switch.tor.alpha": [1, 1.0, 0.5],
    "transport.congestion": ["cubic", "newreno"],
    "run.duration": ["2 s", "3 s"],
    "title": ["another"],
}


Changes = dict[str, object]


@functools.cache
def base() -> Scenario:
    return load("atlas-lab")


@functools.cache
def slow_hash(changes: str) -> str | None:
    """Hash without the memory of a hasher: None where the changes make no system."""
    try:
        return override(base(), json.loads(changes)).hash()
    except ScenarioError:
        return None  # its computation reports it


def agree(hasher: ScenarioHasher, changes: Changes) -> None:
    slow = slow_hash(json.dumps(changes, sort_keys=True))
    if slow is not None:
        assert hasher.hash(changes) == slow, changes


def test_both_ways_agree_on_every_choice_and_on_every_two_keys() -> None:
    """One hasher for all, as a plan has it: what it believes of some values it uses for others."""
    hasher = ScenarioHasher(base())
    for key, values in CHOICES.items():
        for value in values:
            agree(hasher, {key: value})
    for one, other in itertools.combinations(CHOICES, 2):
        agree(hasher, {one: CHOICES[one][0], other: CHOICES[other][-1]})
        agree(hasher, {one: CHOICES[one][-1], other: CHOICES[other][0]})


def both_ways_agree(keys: list[set[str]], random: Random) -> None:
    hasher = ScenarioHasher(base())
    for chosen in keys * 3:
        agree(hasher, {key: random.choice(CHOICES[key]) for key in sorted(chosen)})


SEQUENCES = given(
    st.lists(
        st.sets(st.sampled_from(sorted(CHOICES)), min_size=1, max_size=4), min_size=1, max_size=4
    ),
    st.randoms(use_true_random=False),
)
"""Keys that are changed together, each several times with other values."""

test_the_quick_way_and_the_slow_way_agree = settings(max_examples=20)(SEQUENCES(both_ways_agree))
test_the_quick_way_and_the_slow_way_agree_at_length = pytest.mark.soak(
    settings(max_examples=1000)(SEQUENCES(both_ways_agree))
)


@pytest.mark.parametrize("given", [{}, {"measure.duration": "14 s"}])
def test_a_measure_key_at_its_default_does_not_change_the_hash(given: dict[str, object]) -> None:
    """The section [measure] has keys that differ from their defaults only: 1 s is the default."""
    system = override(load("laptop"), given)
    for order in itertools.permutations(("1 s", "2 s", "4 s")):
        hasher = ScenarioHasher(system)
        for value in 2 * order:
            change = {"measure.fault_timeout": value}
            assert hasher.hash(change) == override(system, change).hash(), (order, value)


def test_a_choice_that_brings_or_takes_keys_is_hashed_as_the_system_that_it_makes() -> None:
    laptop, rack = load("laptop"), load("small-rack")
    lhc = {"event.arrivals": "lhc", "event.lhc.simple_dead_time": 3, "event.rate": "1 kHz"}
    memory: list[dict[str, object]] = [
        {"hosts.memory_rate": rate} for rate in ("0 b/s", "100 Gb/s", "0 b/s", "200 Gb/s")
    ]
    for base, changes in ((laptop, memory), (rack, [lhc, {"event.arrivals": "poisson"}, lhc])):
        hasher = ScenarioHasher(base)
        for change in changes:
            assert hasher.hash(change) == override(base, change).hash(), change

"""The quick hash of a changed scenario is the hash of the changed scenario."""

from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.scenario import ScenarioError
from daqloom.study.hasher import ScenarioHasher
from daqloom.topology.loaded import load, override

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


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sets(st.sampled_from(sorted(CHOICES)), min_size=1, max_size=4), min_size=1, max_size=4
    ),
    st.randoms(use_true_random=False),
)
def test_the_quick_way_and_the_slow_way_agree(keys: list[set[str]], random: object) -> None:
    base = load("atlas-lab")
    hasher = ScenarioHasher(base)
    for chosen in keys * 3:
        changes = {key: random.choice(CHOICES[key]) for key in sorted(chosen)}  # type: ignore[attr-defined]
        try:
            slow = override(base, changes).hash()
        except ScenarioError:
            continue  # no valid system; whoever computes it will say so
        assert hasher.hash(changes) == slow, changes


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

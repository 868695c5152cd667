"""The quick hash of a changed scenario is the hash of the changed scenario."""

from hypothesis import given, settings
from hypothesis import strategies as st

import daqloom
from daqloom.scenario import ScenarioError
from daqloom.study.hasher import ScenarioHasher

CHOICES: dict[str, list[object]] = {
    "event.rate": ["1 kHz", "12.5 kHz", "1000 Hz"],
    "event.size": ["1 MB", "5 MB", "2500 kB"],
    "event.arrivals": ["poisson", "deterministic"],
    "builders.count": [2, 16, 32],
    "builders.assignment": ["round-robin", "random"],
    "links.access.rate": ["25 Gb/s", "100 Gb/s"],
    "switch.tor.model": ["infinite", "qfx5120-48y", "acx7100-48l"],
    "switch.tor.buffer": ["16 MB", "64 MB"],
    "switch.tor.alpha": [1, 1.0, 0.5],
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
    base = daqloom.load("atlas-lab")
    hasher = ScenarioHasher(base)
    for chosen in keys * 3:
        changes = {key: random.choice(CHOICES[key]) for key in sorted(chosen)}  # type: ignore[attr-defined]
        try:
            slow = base.with_overrides(changes).hash()
        except ScenarioError:
            continue  # no valid system; whoever computes it will say so
        assert hasher.hash(changes) == slow, changes

"""The closed forms of fabrics against the credit-accurate simulation."""

import pytest
from small_fabrics import metrics, small

from daqloom.scenario import FabricScenario

EIGHT = {
    "fabric__spines": 4,
    "fabric__hosts_per_leaf": 4,
    "fabric__radix": 8,
    "fabric__crossbar_speedup": 2,
    "fragments__packing": 8192,
}
"""Two leaves with four hosts each that push 200 full packets to each other."""
COSTS = {"nodes__message_cost": "200 ns", "nodes__polling_delay": "300 ns"}
ROUNDS = 24
PHASES = 8


def eight(**changes: object) -> FabricScenario:
    return small(**(EIGHT | changes))


def both(scenario: FabricScenario) -> tuple[dict[str, float], dict[str, float]]:
    """By formula, and by simulation over whole rounds, as the formula has it."""
    formula = metrics(scenario.analyse())
    round_s = PHASES * formula["phase_s"]
    times = {"run.warmup": 2 * round_s, "run.duration": (2 + ROUNDS) * round_s}
    lengths = {key: f"{1e6 * value:.3f} us" for key, value in times.items()}
    return formula, metrics(scenario.with_overrides(lengths).simulate(seed=1))


@pytest.mark.parametrize(
    "changes",
    [
        {"shift__barrier": "ideal"},
        {"shift__barrier": "ideal", "nodes__streams": 3},
        {"shift__barrier": "ideal", "fabric__mtu": "1024 B", "fabric__buffer": "32 KiB"},
        {"shift__barrier": "ideal", "fabric__credit_update_interval": "1 us"},
        {"shift__barrier": "ideal", "fabric__credit_release": "per-block"},
        {"shift__barrier": "ideal", "nodes__pcie_rate": "100 Gb/s"},
        {"shift__barrier": "ideal", "nodes__memory_rate": "400 Gb/s"},
        {"shift__barrier": "ideal", "nodes__local_rate": "100 Gb/s"},
        {"shift__barrier": "ideal", "fragments__sizes": "poisson"},
        {"shift__barrier": "ideal", "shift__meps_per_phase": 3},
        {"shift__barrier": "ideal", "shift__meps_per_phase": 2, "nodes__streams": 2},
        {"shift__barrier": "ideal", "shift__meps_per_phase": 2, "nodes__pcie_rate": "100 Gb/s"},
        {"shift__barrier": "ideal", "shift__meps_per_phase": 2, "nodes__local_rate": "100 Gb/s"},
        {"shift__barrier": "ideal", "fabric__spines": 1},  # up to four flows on a link
        {"shift__barrier": "tournament"} | COSTS,
        {"shift__barrier": "tournament", "fabric__delay": "1 us"} | COSTS,
        {"shift__barrier": "tournament", "shift__meps_per_phase": 2} | COSTS,
        {"shift__barrier": "centralised"} | COSTS,
        {"shift__barrier": "dissemination"} | COSTS,
    ],
    ids=str,
)
def test_throughput_agrees_within_one_percent(changes: dict[str, object]) -> None:
    formula, found = both(eight(**changes))
    for name in ("event_rate_hz", "throughput_bps", "node_throughput_bps", "phase_s"):
        assert formula[name] == pytest.approx(found[name], rel=0.01)
    assert formula["processor_share"] == pytest.approx(found["processor_share"], rel=0.01)


@pytest.mark.parametrize("kind", ["tournament", "centralised"])
def test_times_in_a_barrier_agree(kind: str) -> None:
    groups = [{"sources": 4, "share": 0.4}, {"sources": 4, "share": 0.6}]
    formula, found = both(eight(shift__barrier=kind, fragments__groups=groups, **COSTS))
    for name in ("barrier_share", "barrier_rate_hz", "barrier_s.waiting", "barrier_s.releasing"):
        assert formula[name] == pytest.approx(found[name], rel=0.05)


@pytest.mark.parametrize(
    "jitter",
    [
        {"shift__jitter": "exponential", "shift__jitter_mean": "2 us"},
        {
            "shift__jitter": "gaussian",
            "shift__jitter_mean": "3 us",
            "shift__jitter_spread": "1 us",
        },
        {"shift__jitter": "uniform", "shift__jitter_mean": "3 us", "shift__jitter_spread": "2 us"},
        {"nodes__latency": "exponential", "nodes__latency_mean": "1 us"},
    ],
    ids=str,
)
def test_chance_makes_phases_longer_by_what_the_slowest_draws(jitter: dict[str, object]) -> None:
    formula, found = both(eight(shift__barrier="ideal", **jitter))
    # Of 192 phases the mean of the slowest draw is off by some percent of a spread of 2 us.
    assert formula["phase_s"] == pytest.approx(found["phase_s"], rel=0.015)


def test_dummies_cost_their_share_in_both() -> None:
    six = {"nodes__count": 6, "nodes__placement": "spread", "nodes__dummies": "all-ports"}
    formula, found = both(eight(shift__barrier="ideal", **six))
    assert formula["dummy_share"] == found["dummy_share"] == 1 / 4
    assert formula["event_rate_hz"] == pytest.approx(found["event_rate_hz"], rel=0.01)


@pytest.mark.parametrize("changes", [{"shift__barrier": "none"}, {"shift__phases_per_barrier": 4}])
def test_out_of_step_a_simulation_stays_below(changes: dict[str, object]) -> None:
    formula, found = both(eight(**changes, **COSTS))
    assert found["event_rate_hz"] < 1.01 * formula["event_rate_hz"]


def test_a_full_output_buffer_lets_as_much_through() -> None:
    slow = {"nodes__output_buffer": "25 MB", "nodes__processing_mean": "2 ms"}
    scenario = eight(shift__barrier="ideal", run__duration="12 ms", run__warmup="2 ms", **slow)
    formula, found = metrics(scenario.analyse()), metrics(scenario.simulate(seed=1))
    assert formula["event_rate_hz"] == pytest.approx(found["event_rate_hz"], rel=0.05)


@pytest.mark.parametrize(
    ("window", "grace", "streams"),
    [("60 us", "20 us", 1), ("100 us", "10 us", 1), ("50 us", "5 us", 3)],
)
def test_windows_let_through_what_fits(window: str, grace: str, streams: int) -> None:
    scenario = eight(
        shift__change="window",
        shift__window=window,
        shift__grace=grace,
        nodes__streams=streams,
        run__duration="12 ms",
        run__warmup="4 ms",
    )
    formula, found = metrics(scenario.analyse()), metrics(scenario.simulate(seed=1))
    assert formula["event_rate_hz"] == pytest.approx(found["event_rate_hz"], rel=0.02)
    assert formula["phase_s"] == pytest.approx(found["phase_s"], rel=0.02)


PIPE = {"nodes__protocol": "daqpipe", "nodes__folded": False, "run__duration": "4 ms"} | COSTS


def test_daqpipe_with_one_of_everything_is_the_sum_of_its_messages() -> None:
    alone = {"nodes__count": 2, "daqpipe__credits": 1, "daqpipe__parallel_sends": 1}
    scenario = small(**PIPE, **alone)
    formula, found = metrics(scenario.analyse()), metrics(scenario.simulate(seed=1))
    assert formula["collection_latency_s.min"] == pytest.approx(
        found["collection_latency_s.min"], rel=1e-9
    )
    assert formula["event_rate_hz"] == pytest.approx(found["event_rate_hz"], rel=0.01)


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize(("credits", "sends"), [(1, 1), (1, 4), (4, 1), (4, 4)])
@pytest.mark.parametrize("slot", ["0 s", "25 us"])
def test_daqpipe_stays_below_its_bounds(
    mode: str, folded: bool, credits: int, sends: int, slot: str
) -> None:
    options = {"daqpipe__mode": mode, "nodes__folded": folded, "daqpipe__credits": credits}
    more = {"daqpipe__parallel_sends": sends, "daqpipe__slot": slot}
    scenario = eight(**(PIPE | options | more | {"fragments__packing": 4096}))
    formula, found = metrics(scenario.analyse()), metrics(scenario.simulate(seed=1))
    assert found["event_rate_hz"] < 1.01 * formula["event_rate_hz"]
    assert found["collection_latency_s.min"] > (1 - 1e-9) * formula["collection_latency_s.min"]
    if slot != "0 s" and credits == 1 and mode == "pull":  # all of an event within its slots
        assert found["event_rate_hz"] > 0.85 * formula["event_rate_hz"]

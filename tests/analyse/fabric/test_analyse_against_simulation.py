"""The closed forms of fabrics against the credit-accurate simulation."""

import pytest

from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario
from support.small_fabrics import analysed, simulated, small

EIGHT = {"network__spines": 4, "network__hosts_per_leaf": 4, "network__switch__radix": 8}
EIGHT |= {"network__switch__crossbar_speedup": 2, "event__packing": 8192}
"""Two leaves with four hosts each that push 200 full packets to each other."""
COSTS = {"hosts__message_cost": "200 ns", "hosts__polling_delay": "300 ns"}
ROUNDS = 24
PHASES = 8


def eight(**changes: object) -> Scenario:
    return small(**(EIGHT | changes))


def both(scenario: Scenario) -> tuple[dict[str, float], dict[str, float]]:
    """By formula, and by simulation over whole rounds, as the formula has it."""
    formula = analysed(scenario)
    round_s = PHASES * formula["phase_s"]
    times = {"run.warmup": 2 * round_s, "run.duration": (2 + ROUNDS) * round_s}
    lengths = {key: f"{1e6 * value:.3f} us" for key, value in times.items()}
    return formula, simulated(override(scenario, lengths))


IDEAL = {"building__barrier": "ideal"}
TOURNAMENT = {"building__barrier": "tournament"} | COSTS
TWO = {"building__meps_per_phase": 2}


@pytest.mark.parametrize(
    "changes",
    [
        IDEAL,
        IDEAL | {"readout__streams": 3},
        IDEAL | {"transport__mtu": "1024 B", "network__switch__buffer": "32 KiB"},
        IDEAL | {"network__switch__credit_update_interval": "1 us"},
        IDEAL | {"network__switch__credit_release": "per-block"},
        IDEAL | {"hosts__pcie_rate": "100 Gb/s"},
        IDEAL | {"hosts__memory_rate": "400 Gb/s"},
        IDEAL | {"hosts__local_rate": "100 Gb/s"},
        IDEAL | {"event__fragment_sizes": "poisson"},
        IDEAL | {"building__meps_per_phase": 3},
        IDEAL | TWO | {"readout__streams": 2},
        IDEAL | TWO | {"hosts__pcie_rate": "100 Gb/s"},
        IDEAL | TWO | {"hosts__local_rate": "100 Gb/s"},
        IDEAL | {"network__spines": 1},  # up to four flows on a link
        TOURNAMENT,
        TOURNAMENT | {"network__links__delay": "1 us"},
        TOURNAMENT | TWO,
        {"building__barrier": "centralised"} | COSTS,
        {"building__barrier": "dissemination"} | COSTS,
        {"building__barrier": "network"} | COSTS | {"hosts__message_cost": "50 ns"},
    ],
    ids=str,
)
def test_throughput_agrees_within_one_percent(changes: dict[str, object]) -> None:
    formula, found = both(eight(**changes))
    rates = ("written_event_rate_hz", "written_throughput_bps", "node_throughput_bps")
    for name in (*rates, "phase_s", "processor_share"):
        assert formula[name] == pytest.approx(found[name], rel=0.01)


@pytest.mark.parametrize("kind", ["tournament", "centralised"])
def test_times_in_a_barrier_agree(kind: str) -> None:
    groups = [{"sources": 4, "share": 0.4}, {"sources": 4, "share": 0.6}]
    formula, found = both(eight(building__barrier=kind, event__groups=groups, **COSTS))
    for name in ("barrier_share", "barrier_rate_hz", "barrier_s.waiting", "barrier_s.releasing"):
        assert formula[name] == pytest.approx(found[name], rel=0.05)


@pytest.mark.parametrize(("group", "levels"), [("all", 2), ("leaf", 1)])
def test_a_barrier_of_the_network_takes_the_levels_of_its_tree_twice(group, levels) -> None:
    barrier = {"barrier": "network", "barrier_group": group, "barrier_level_latency": "500 ns"}
    changes = {f"building__{key}": value for key, value in barrier.items()}
    formula, found = both(eight(hosts__polling_delay="300 ns", **changes))
    released_s = 2 * levels * 500e-9 + 300e-9
    assert found["barrier_s.releasing"] == pytest.approx(released_s, abs=1e-12)
    assert formula["barrier_s.releasing"] == pytest.approx(released_s, abs=1e-12)
    if group == "all":
        assert formula["phase_s"] == pytest.approx(found["phase_s"], rel=1e-6)


@pytest.mark.parametrize(
    ("table", "delay"),
    [
        ("building__jitter", {"kind": "exponential", "mean": "2 us"}),
        ("building__jitter", {"kind": "gaussian", "mean": "3 us", "spread": "1 us"}),
        ("building__jitter", {"kind": "uniform", "mean": "3 us", "spread": "2 us"}),
        ("hosts__latency", {"kind": "exponential", "mean": "1 us"}),
    ],
)
def test_random_delays_lengthen_phases_by_the_slowest_draw(table, delay) -> None:
    drawn = {f"{table}__{key}": value for key, value in delay.items()}
    formula, found = both(eight(building__barrier="ideal", **drawn))
    # The mean of the slowest draw over 192 phases is off by some percent of a spread of 2 us.
    assert formula["phase_s"] == pytest.approx(found["phase_s"], rel=0.015)


def test_dummies_cost_their_share_in_both() -> None:
    six = {"readout__units": 6, "hosts__placement": "spread", "building__dummies": "all-ports"}
    formula, found = both(eight(building__barrier="ideal", **six))
    assert formula["dummy_share"] == found["dummy_share"] == 1 / 4
    assert formula["event_rate_hz"] == pytest.approx(found["written_event_rate_hz"], rel=0.01)


@pytest.mark.parametrize(
    "changes", [{"building__barrier": "none"}, {"building__phases_per_barrier": 4}]
)
def test_out_of_step_a_simulation_stays_below(changes: dict[str, object]) -> None:
    formula, found = both(eight(**changes, **COSTS))
    assert found["written_event_rate_hz"] < 1.01 * formula["event_rate_hz"]


def test_a_full_output_buffer_lets_nearly_as_much_through() -> None:
    # A MEP has its room while it is collected, too, which the formula leaves out.
    slow = {"builders__buffer": "25 MB", "builders__processing": [{"mean": "2 ms"}]}
    scenario = eight(building__barrier="ideal", run__duration="42 ms", run__warmup="2 ms", **slow)
    formula, found = analysed(scenario), simulated(scenario)
    assert 0.85 < found["written_event_rate_hz"] / formula["event_rate_hz"] < 1


@pytest.mark.parametrize(
    ("window", "grace", "streams"),
    [("60 us", "20 us", 1), ("100 us", "10 us", 1), ("50 us", "5 us", 3)],
)
def test_windows_limit_the_rate_to_the_writes_that_fit(
    window: str, grace: str, streams: int
) -> None:
    times = {"building__window": window, "building__grace": grace, "run__duration": "12 ms"}
    times |= {"run__warmup": "4 ms", "building__change": "window"}
    scenario = eight(**times, readout__streams=streams)
    formula, found = analysed(scenario), simulated(scenario)
    assert formula["event_rate_hz"] == pytest.approx(found["written_event_rate_hz"], rel=0.02)
    assert formula["phase_s"] == pytest.approx(found["phase_s"], rel=0.02)


PIPE = {"building__protocol": "daqpipe", "builders__folded": False, "run__duration": "4 ms"} | COSTS


def test_daqpipe_with_one_of_everything_is_the_sum_of_its_messages() -> None:
    alone = {"readout__units": 1, "building__credits": 1, "building__parallel_sends": 1}
    scenario = small(**PIPE, **alone)
    formula, found = analysed(scenario), simulated(scenario)
    least_s = pytest.approx(found["collection_latency_s.min"], rel=1e-9)
    assert formula["collection_latency_s.min"] == least_s
    assert formula["event_rate_hz"] == pytest.approx(found["written_event_rate_hz"], rel=0.01)


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize(("credits", "sends"), [(1, 1), (1, 4), (4, 1), (4, 4)])
@pytest.mark.parametrize("slot", ["0 s", "25 us"])
def test_daqpipe_stays_below_its_bounds(mode, folded, credits, sends, slot) -> None:
    options = {"building__mode": mode, "builders__folded": folded, "building__credits": credits}
    more = {"building__parallel_sends": sends, "building__slot": slot}
    scenario = eight(**(PIPE | options | more | {"event__packing": 4096}))
    formula, found = analysed(scenario), simulated(scenario)
    assert found["written_event_rate_hz"] < 1.01 * formula["event_rate_hz"]
    assert found["collection_latency_s.min"] > (1 - 1e-9) * formula["collection_latency_s.min"]
    if slot != "0 s" and credits == 1 and mode == "pull":  # all of an event within its slots
        assert found["written_event_rate_hz"] > 0.85 * formula["event_rate_hz"]

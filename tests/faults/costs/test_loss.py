"""Cost of failures: sums by hand, known distributions, and single simulations."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from daqloom.deployment.scenarios import override
from daqloom.faults import FaultsError, cost
from daqloom.faults.costs.loss import MONTH_H, Cost, Estimate, most_at_once
from daqloom.faults.costs.loss_record import notes, record
from daqloom.faults.costs.network import HOST_LINK, Network, kinds, network_of
from daqloom.faults.costs.overlap import MOST_AT_ONCE, MOST_BLOCKS, overlap
from daqloom.faults.costs.throughput import Throughput
from daqloom.faults.logs.clock import DAY_S
from daqloom.faults.statistics.failure import Failure, FailureHistory, Period
from daqloom.faults.statistics.generate import Truth, generate
from daqloom.faults.statistics.links import Links
from daqloom.faults.statistics.summary import MERGED, Variant, variants
from daqloom.scenario.file.load import load
from daqloom.scenario.schema.models import Scenario
from daqloom.study import StudyError
from daqloom.study.methods import methods
from daqloom.study.run.cable_failures import (
    AROUND,
    AS_IT_IS,
    MINHOP,
    REORDERED,
    broken_study,
    throughputs,
    usual_numbers,
)
from daqloom.study.run.program import Outcome, Run, Task, tasks
from daqloom.topology.shapes.clos import folded_clos
from support.small_fabrics import pods, small

CABLES = ("a", "b", "c")
HAND = Network(
    Links(), dict.fromkeys(CABLES, "leaf - spine") | {"h": HOST_LINK, "i": HOST_LINK}, {"h": 0.25}
)
"""Three cables between switches, a host with a quarter of the units, and one without any."""
CURVE = Throughput({0: (10.0,), 1: (8.0, 6.0), 2: (5.0,)}, event_rate_hz=4.0)
"""Left with 1 and 2 broken: 0.7 and 0.5."""
OBSERVED = Period(0, 1000)
TWICE = small(network__spine_links=2, network__switch__radix=6)
"""Two cables from each leaf to each spine."""
OUTAGES = (
    Failure(0, 100, "a"),
    Failure(50, 150, "b"),
    Failure(140, 240, "h"),
    Failure(900, None, "c", flaps=4),
)


def month(
    failures: Sequence[Failure], observed: Period = OBSERVED, tests: tuple[Period, ...] = ()
) -> Variant:
    return Variant(MERGED, tuple(failures), observed, 5, tests)


def between_switches(names: Iterable[str]) -> Network:
    return Network(Links(), dict.fromkeys(names, "leaf - spine"), {})


def of_hand(**options: object) -> Cost:
    return cost(month(OUTAGES), HAND, {AS_IT_IS: CURVE}, **options)  # type: ignore[arg-type]


def test_times_with_a_number_of_links_down_are_without_test_periods() -> None:
    found = overlap(OUTAGES, HAND, OBSERVED)
    # a alone for 50 s, with b for 50 s, b alone for 50 s; c alone to the end, 100 s.
    assert found.time_s.tolist() == [[1000 - 250, 200, 50]]
    # h takes a quarter for 10 s beside b, and for 90 s with no cable down.
    assert found.cut_s == pytest.approx(np.array([[90 / 4, 10 / 4, 0]]))
    assert found.length_s == 1000
    # 60 to 70 s have a and b down, 200 to 300 s have none; h begins 40 s before.
    tests = (Period(60, 70), Period(200, 300))
    found = overlap(OUTAGES, HAND, OBSERVED, tests)
    assert found.length_s == 890
    assert found.time_s.tolist() == [[890 - 240, 200, 40]]
    assert found.cut_s == pytest.approx(np.array([[50 / 4, 10 / 4, 0]]))


def test_blocks_are_days_or_several_in_long_logs() -> None:
    observed = Period(5.0, 5.0 + 2.5 * DAY_S)
    down = [Failure(5 + 0.75 * DAY_S, 5 + 1.25 * DAY_S, "a")]
    found = overlap(down, HAND, observed)
    expected = np.array([[0.75, 0.25], [0.75, 0.25], [0.5, 0]]) * DAY_S
    assert found.time_s == pytest.approx(expected)
    ages = overlap(down, HAND, Period(0.0, 3 * MOST_BLOCKS * DAY_S))
    assert ages.block_s == 3 * DAY_S
    assert ages.time_s.sum(axis=0) == pytest.approx(np.array([3 * MOST_BLOCKS - 0.5, 0.5]) * DAY_S)


def test_links_that_change_at_the_same_time_are_apart_and_very_many_are_together() -> None:
    found = overlap([Failure(0, 10, "a"), Failure(10, 20, "b")], HAND, Period(0, 20))
    assert found.time_s.tolist() == [[0, 20]]
    names = [f"link {n}" for n in range(MOST_AT_ONCE + 5)]
    network = between_switches(names)
    found = overlap([Failure(0, 1, name) for name in names], network, Period(0, 2))
    assert found.time_s.shape == (1, MOST_AT_ONCE + 1)
    assert (found.time_s[0, 0], found.time_s[0, -1]) == (1, 1)


def test_the_loss_is_the_sum_over_links_that_are_down() -> None:
    found = of_hand()
    # 1 broken for 200 s costs 0.3, 2 for 50 s 0.5; h costs a quarter of all for 90 s and of 0.7
    # for 10 s.
    cables_s, host_s = 200 * 0.3 + 50 * 0.5, 90 / 4 + 0.7 * 10 / 4
    assert found.lost == Estimate(pytest.approx((cables_s + host_s) / 1000))
    assert found.ways[0].hours_lost.value == pytest.approx(MONTH_H * (cables_s + host_s) / 1000)
    assert found.ways[0].mean_bps.value == pytest.approx(10 * (1 - (cables_s + host_s) / 1000))
    by_kind = {kind.kind: kind for kind in found.kinds}
    assert by_kind["leaf - spine"].hours_lost == pytest.approx(MONTH_H * cables_s / 1000)
    assert by_kind[HOST_LINK].hours_lost == pytest.approx(MONTH_H * host_s / 1000)
    assert (by_kind["leaf - spine"].links, by_kind["leaf - spine"].failures) == (3, 3)
    assert by_kind["leaf - spine"].mean_s == pytest.approx(100)
    lost, lost_s = record(found)["lost"], MONTH_H * 3600 * (cables_s + host_s) / 1000
    assert lost["events"]["value"] == pytest.approx(4 * lost_s)
    assert lost["bytes"]["value"] == pytest.approx(10 / 8 * lost_s)


def test_links_that_are_down_together_share_the_loss_and_hosts_without_units_have_none() -> None:
    worst = {each.total.link: each for each in of_hand().worst}
    per_s = MONTH_H / 1000
    assert worst["a"].hours_lost == pytest.approx((50 * 0.3 + 50 * 0.5 / 2) * per_s)
    assert worst["b"].hours_lost == pytest.approx((50 * 0.5 / 2 + 50 * 0.3) * per_s)
    assert worst["c"].hours_lost == pytest.approx(100 * 0.3 * per_s)
    assert worst["h"].hours_lost == pytest.approx((90 + 0.7 * 10) / 4 * per_s)
    total = sum(each.hours_lost for each in worst.values())
    assert total == pytest.approx(of_hand().ways[0].hours_lost.value)
    found = cost(month([Failure(0, 500, "i")]), HAND, {AS_IT_IS: CURVE})
    assert found.lost.value == 0
    assert found.most == 0


def test_repairs_within_a_time_cost_that_time_and_each_flap_a_sweep() -> None:
    found = of_hand(repairs_s=[10.0])
    times = dict(found.faster_repairs)
    # a and b no longer meet, nor b and h.
    expected = 3 * 10 * 0.3 + 10 / 4
    assert times[10].hours_lost.value == pytest.approx(MONTH_H * expected / 1000)
    assert found.hours_repaired(1e9) == pytest.approx(found.ways[0].hours_lost.value)
    assert list(times) == [10.0]  # none outlasts 100 s, their median
    assert of_hand(sweep_s=0.5).sweeps_h == pytest.approx(MONTH_H * (1 + 1 + 4) * 0.5 / 1000)
    assert of_hand().sweep_s == pytest.approx(2 * 0.35e-3)  # two hosts


def test_links_that_are_mended_fail_no_more() -> None:
    assert of_hand().reliable_links.hours_lost.value == pytest.approx(0)
    names = [f"link {n}" for n in range(12)]
    network = between_switches(names)
    apart = [Failure(50 * n, 50 * n + 10 + n, name) for n, name in enumerate(names)]
    found = cost(month(apart), network, {AS_IT_IS: CURVE})
    # The ten with most downtime are all but the first two, which are down for 10 and 11 s.
    assert found.reliable_links.hours_lost.value == pytest.approx(MONTH_H * 21 * 0.3 / 1000)
    assert found.worst[0].total.link == "link 11"


def test_throughput_is_linear_between_and_the_same_beyond() -> None:
    found = Throughput({0: (10.0,), 1: (8.0, 6.0), 3: (4.0,)})
    assert found.rates_bps(5).tolist() == [10, 7, 5.5, 4, 4, 4]
    origins = [found.origin(k) for k in range(6)]
    assert origins == ["simulated", "simulated", "interpolated", "simulated", "clamped", "clamped"]
    assert Throughput({0: (10.0,)}).rates_bps(2).tolist() == [10, 10, 10]


def test_other_ways_are_measured_by_the_full_throughput_as_it_is() -> None:
    other = Throughput({0: (9.0,), 1: (9.0,), 2: (9.0,)})
    found = cost(month(OUTAGES), HAND, {AS_IT_IS: CURVE, "other": other})
    up_s = 1000 - 100 / 4  # all but what h takes away
    by_name = {way.name: way for way in found.ways}
    assert by_name["other"].hours_lost.value == pytest.approx(MONTH_H * (1 - 0.9 * up_s / 1000))
    both = by_name[f"{AS_IT_IS}; while a cable is broken: other"]
    # Unchanged for 660 s with all up and 90 s without h; the other for 240 s, and 10 s without h.
    mean = (660 + 90 * 0.75 + 0.9 * (240 + 10 * 0.75)) / 1000
    assert both.hours_lost.value == pytest.approx(MONTH_H * (1 - mean))
    assert both.full_bps == 10
    around = Throughput({0: (10.0,), 1: (9.5,), 2: (9.0,)})
    found = cost(month(OUTAGES), HAND, {AS_IT_IS: CURVE, AROUND: around})
    assert [way.name for way in found.ways] == [AS_IT_IS, AROUND]


def drawn_month(seed: int, days: int, per_day: float, mean_s: float) -> Variant:
    """Failures of 5000 links that begin at random times, from long before the log on."""
    random = np.random.default_rng(seed)
    before_s = 20 * mean_s
    length_s = days * DAY_S
    count = random.poisson(per_day * (length_s + before_s) / DAY_S)
    begins = np.sort(random.uniform(-before_s, length_s, count))
    ends = begins + random.exponential(mean_s, count)
    failures = [
        Failure(begin_s, end_s, f"link {n % 5000}")
        for n, (begin_s, end_s) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))
        if end_s > 0
    ]
    return month(failures, Period(0.0, length_s))


def test_intervals_have_their_confidence() -> None:
    """Failures that begin at a constant rate are so many at once by a Poisson distribution."""
    network = between_switches(f"link {n}" for n in range(5000))
    per_day, mean_s = 20.0, 1200.0
    at_once = per_day * mean_s / DAY_S
    none = np.exp(-at_once)
    one = at_once * none
    lost = 0.3 * one + 0.5 * (1 - none - one)
    sharp = Throughput({0: (10.0,), 1: (7.0,), 2: (5.0,)})  # one draw: no spread of its own
    held = {"none": 0, "one": 0, "lost": 0}
    for seed in range(100):
        found = cost(drawn_month(seed, 40, per_day, mean_s), network, {AS_IT_IS: sharp})
        estimates = {"none": found.at_once[0], "one": found.at_once[1], "lost": found.lost}
        for (name, each), truth in zip(estimates.items(), (none, one, lost), strict=True):
            assert each.low is not None
            assert each.high is not None
            assert each.low < each.value < each.high
            held[name] += each.low <= truth <= each.high
    # 100 draws with 0.95: 95 ± 2.2; days drawn again make it a little less.
    assert all(87 <= number <= 99 for number in held.values()), held


def test_draws_widen_intervals_and_the_same_seed_draws_the_same() -> None:
    drawn = drawn_month(1, 60, 20.0, 1200.0)
    network = between_switches(each.link for each in drawn.failures)
    wide = Throughput({0: (10.0,), 1: (9.0, 7.0, 5.0), 2: (5.0,)})
    narrow = Throughput({0: (10.0,), 1: (7.0,), 2: (5.0,)})
    found = [cost(drawn, network, {AS_IT_IS: each}).lost for each in (narrow, wide)]
    assert found[0].value == pytest.approx(found[1].value)
    widths = [each.high - each.low for each in found if each.high and each.low]
    assert widths[1] > 1.5 * widths[0]
    drawn = drawn_month(2, 30, 20.0, 1200.0)
    network = between_switches(each.link for each in drawn.failures)
    first, again, other = (
        cost(drawn, network, {AS_IT_IS: CURVE}, seed=seed).lost for seed in (1, 1, 2)
    )
    assert first == again
    assert other.value == first.value
    assert (other.low, other.high) != (first.low, first.high)


def test_a_generated_log_has_the_downtime_of_its_parameters() -> None:
    truth = Truth(failures=4000, in_tests=0, tests=(), flapping=0.0, repair_spread=0.5)
    names = [f"link {n}" for n in range(400)]
    network = between_switches(names)
    drawn = generate(names, truth, seed=3)
    observed = Period(truth.begin_s, truth.end_s)
    found = variants(FailureHistory(tuple(drawn), observed, {}), [], 0)[MERGED]  # type: ignore[arg-type]
    course = overlap(found.failures, network, observed)
    down_s = float(course.time_s.sum(axis=0) @ np.arange(course.time_s.shape[1]))
    # Log-normal: mean median · exp(σ²/2), variance mean² (exp(σ²) - 1).
    mean_s = truth.repair_median_s * np.exp(0.5**2 / 2)
    spread_s = mean_s * np.sqrt(4000 * (np.exp(0.5**2) - 1))
    assert down_s == pytest.approx(4000 * mean_s, abs=4 * spread_s)
    assert course.time_s.sum() == pytest.approx(31 * DAY_S)


def test_notes_name_the_assumptions_and_why_there_are_no_intervals() -> None:
    curve = Throughput({0: (10.0,), 1: (8.0,)})
    found = cost(month(OUTAGES), HAND, {AS_IT_IS: curve})
    [beyond, _] = notes(found)
    assert beyond.startswith("throughput with more than 1 broken (5.00% of the time, 2 at most)")
    sparse = cost(month(OUTAGES), HAND, {AS_IT_IS: Throughput({0: (10.0,), 2: (8.0,)})})
    assert "throughput with 1 broken is interpolated" in list(notes(sparse))
    long = cost(month([Failure(0, 2 * DAY_S, "a")], Period(0, 9 * DAY_S)), HAND, {AS_IT_IS: CURVE})
    assert any("1 failure outlasted 1 d" in each for each in notes(long))
    found = of_hand()
    assert found.lost.low is found.lost.high is None
    assert any("1 day is too short for intervals" in each for each in notes(found))


def test_links_have_kinds_by_the_levels_that_they_connect() -> None:
    fabric = pods(64)
    links = Links(fabric)
    found = kinds(fabric, links.cables)
    assert set(links.cables) == set(links.names)
    counts = {name: list(found.values()).count(name) for name in set(found.values())}
    # Four pods of three leaves, three cables to each of two spines; the rest lead to cores.
    assert counts[HOST_LINK] == 64
    assert counts["leaf - spine"] == 4 * 3 * 2 * 3
    assert counts["spine - core"] == len(fabric.cables) - 64 - 72
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    found = kinds(fabric, Links(fabric).cables)
    assert found["leaf00 port 3 - spine00 port 1"] == "leaf - spine"
    assert sorted(found.values()) == [HOST_LINK] * 4 + ["leaf - spine"] * (len(found) - 4)


def test_a_host_link_costs_its_units_in_networks_whose_cables_fail() -> None:
    found = network_of(small(readout__units=3))
    assert found.counts[HOST_LINK] == 4
    shares = sorted(found.share.values())
    assert shares == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert found.between_switches == 4
    apart = network_of(small(builders__folded=False, readout__units=2, builders__units=2))
    assert list(apart.share.values()) == [0.5] * 4
    broken = network_of(override(small(), {"faults.cables": 2}))
    assert broken.between_switches == 4  # what a scenario says of broken cables is set aside
    with pytest.raises(FaultsError, match=r'network.shape = "rack", whose .* expected one of'):
        network_of(load("atlas-lab"))
    with pytest.raises(FaultsError, match="it builds no events whose rate"):
        network_of(load("ib-uniform-64"))
    lone = {
        "network.shape": "cables",
        "network.switches": ["s"],
        "network.cables": [{"ends": ["a", "s"]}, {"ends": ["b", "s"]}],
        "network.links.rate": "HDR",
        "readout.units": 2,
    }
    with pytest.raises(FaultsError, match="has no cables between switches that could fail"):
        network_of(small(**lone))


def test_numbers_to_simulate_are_those_that_occur_in_logs_with_failures() -> None:
    found = [usual_numbers(most) for most in (0, 1, 2, 4, 5, 40)]
    assert found == [(0,), (1,), (1, 2), (1, 3, 4), (1, 3, 5), (1, 3, 5)]
    with pytest.raises(FaultsError, match=r"no failure of a link of this network \(5 links\)"):
        most_at_once(month([]), HAND)
    with pytest.raises(FaultsError, match="cover no time outside test periods"):
        cost(month(OUTAGES, OBSERVED, (Period(-1, 2000),)), HAND, {AS_IT_IS: CURVE})


def test_a_study_has_each_way_whole_and_with_draws_of_broken_cables() -> None:
    system = override(TWICE, {"faults.seed": 7, "run.seed": 5})
    planned = broken_study(system, (1, 2), draws=2)
    assert planned.study.seeds == (5,)
    assert len(planned.points) == len(planned.study.axes[0]) == 5 * (1 + 2 * 2)
    by_point = dict(zip(planned.points, planned.study.axes[0].steps, strict=True))
    whole = by_point[AS_IT_IS, 0, 0]
    assert whole == {"faults.cables": 0}
    second = by_point[AS_IT_IS, 2, 1]
    assert second == {"faults.cables": 2, "faults.seed": 8, "network.routing": MINHOP}
    assert by_point[AROUND, 2, 1] == second | {"network.routing": "d-mod-k"}
    assert by_point[REORDERED, 2, 1] == second | {"network.routing": "mended"}
    paced = by_point["builder-paced, no barrier", 1, 0]
    assert paced["building.pace"] == "builder"
    assert paced["building.barrier"] == "none"
    [note] = planned.notes
    assert "to which its ftree falls back" in note
    assert {point.way for point in broken_study(system, (1,), others=False).points} == {AS_IT_IS}


def test_where_only_host_links_fail_nothing_is_broken() -> None:
    planned = broken_study(TWICE, (0,))
    assert {point.broken for point in planned.points} == {0}
    assert not {AROUND, REORDERED} & {point.way for point in planned.points}
    assert planned.notes == ()
    other = Throughput({0: (9.0,)})
    found = cost(month([Failure(0, 500, "h")]), HAND, {AS_IT_IS: CURVE, "other": other})
    assert [way.name for way in found.ways] == [AS_IT_IS, "other"]
    assert found.lost.value == pytest.approx(0.5 / 4)


def test_ways_are_those_that_differ_from_the_scenario() -> None:
    def ways(system: Scenario, **changes: object) -> set[str]:
        more = {key.replace("__", "."): value for key, value in changes.items()}
        planned = broken_study(override(system, more), (1,))
        return {point.way for point in planned.points} - {AS_IT_IS}

    paced = "builder-paced, no barrier"
    assert ways(TWICE) == {"no barrier", paced, AROUND, REORDERED}
    assert ways(TWICE, building__barrier="none") == {paced, AROUND, REORDERED}
    assert ways(TWICE, building__change="window") == {AROUND, REORDERED}
    # Mended tables need linear shift with folded units, and are no change where they are set.
    assert ways(TWICE, building__protocol="daqpipe") == {AROUND}
    assert ways(TWICE, builders__folded=False) == {"no barrier", paced, AROUND}
    assert ways(TWICE, network__routing="mended") == {"no barrier", paced}
    assert ways(TWICE, network__routing="minimal") == {"no barrier", paced, REORDERED}
    assert ways(load("lhcb-ethernet")) == {"no barrier", paced, REORDERED}
    # Where one cable leads to each spine, a leaf without it has other spines than the rest.
    single = small(network__leaves=3)
    assert ways(single) == {"no barrier", paced, REORDERED}
    left_out = broken_study(single, (1,)).notes[-1]
    assert "is left out, as some of the draws have no such tables: D-mod-K requires" in left_out
    [note] = broken_study(load("daqpipe-cluster64"), (1,)).notes
    assert "imported tables do not account for broken cables" in note


def test_throughputs_are_those_of_single_simulations_of_known_draws() -> None:
    system = small(run__duration="1 ms", run__warmup="0.2 ms")
    found, notes = throughputs(system, (1,), draws=2, others=False)
    assert (list(found), len(notes)) == ([AS_IT_IS], 1)
    for number, seeds in ((0, (1,)), (1, (1, 2))):
        expected = []
        for seed in seeds:
            changes = {"faults.cables": number, "faults.seed": seed}
            changes |= {"network.routing": MINHOP} if number else {}
            result = methods.simulate(override(system, changes))
            expected.append(result.metric("written_throughput_bps"))
        assert found[AS_IT_IS].found_bps[number] == tuple(expected)
    whole = methods.simulate(override(system, {"faults.cables": 0}))
    assert found[AS_IT_IS].event_rate_hz == whole.metric("written_event_rate_hz")
    system = small(run__duration="1 ms", run__warmup="0.2 ms")
    planned = broken_study(system, (1,), draws=2, others=False)
    found = list(tasks(planned.study))
    result = methods.simulate(override(system, {"faults.cables": 0}))
    done = Outcome(Run(result))
    failures: dict[Task, str] = {found[2]: "it broke"}
    outcomes = [(found[0], done), (found[1], done), (found[2], None)]
    by_way, sentences = planned.throughputs(outcomes, failures)
    assert len(by_way[AS_IT_IS].found_bps[1]) == 1
    assert sentences == [
        '"as it is": 1 of 2 draws with 1 broken have no throughput and do not count: it broke'
    ]
    with pytest.raises(StudyError, match="no throughput with 0 broken: it was not computed"):
        planned.throughputs([(found[0], None), *outcomes[1:]], {})


def test_draws_are_limited_and_those_without_a_path_refused() -> None:
    # Four cables, two to each leaf: three broken leave a leaf without any, or do not.
    system = small(run__duration="1 ms", run__warmup="0.2 ms")
    with pytest.raises(StudyError, match=r'"as it is" has no throughput with .* broken: .*no path'):
        throughputs(system, (4,), draws=1, others=False)
    with pytest.raises(StudyError, match="0 draws of broken cables: expected 1 to 1000"):
        broken_study(small(), (1,), draws=0)

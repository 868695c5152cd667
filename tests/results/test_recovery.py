"""When a run recovers from a fault: under regular traffic, and where chance makes it fluctuate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.results.recovery import Bin, Ending, recovery


def a_second_each(*throughputs_bps: float) -> list[Bin]:
    return [Bin(s, s + 1, float(bps)) for s, bps in enumerate(throughputs_bps)]


FOUR, LEFT = [(0.0, 4)], [(0.0, 4), (4.2, 0), (6.0, 3)]


def test_a_run_recovers_with_the_share_of_the_members_that_are_left_without_a_second_dip() -> None:
    # Three of four: 0.95 × 100 × 3 / 4 = 71.25 b/s are as before.
    bins = a_second_each(100, 100, 100, 100, 20, 0, 71, 72, 75, 75)
    assert recovery(4.0, 10.0, bins, LEFT) == 3.0
    assert recovery(4.0, 10.0, bins, [(0.0, 4), (4.2, 0), (6.0, 4)]) is None
    assert recovery(4.0, 7.5, bins, LEFT) is None  # the next fault comes first
    members = [(0.0, 4), (4.2, 0), (4.4, 3), (7.1, 0), (7.3, 4)]
    bins = a_second_each(100, 100, 100, 100, 60, 75, 75, 10, 100, 100)
    assert recovery(4.0, 10.0, bins, members) == 1.0


def test_a_run_recovers_when_the_rate_is_back_at_once_where_it_was_never_lower() -> None:
    assert recovery(3.0, 9.0, a_second_each(100, 100, 100, 50, 40, 50, 96, 100, 100), FOUR) == 3.0
    assert recovery(4.5, 9.0, a_second_each(*[100] * 4, 96, *[100] * 4), FOUR) == 0.0
    assert recovery(4.0, 9.0, a_second_each(*[0] * 9), FOUR) is None
    assert recovery(0.0, 9.0, a_second_each(*[100] * 9), FOUR) is None  # nothing is before


def test_a_recovery_is_never_before_the_detection_and_the_regrouping() -> None:
    bins = a_second_each(*[100] * 5, 0, *[100] * 6)
    assert recovery(5.0, 12.0, bins, FOUR) == 1.0
    assert recovery(5.0, 12.0, bins, FOUR, detected_s=7.5) == 2.5
    regrouping = [(0.0, 4), (5.5, 0), (8.25, 3)]
    assert recovery(5.0, 12.0, bins, regrouping, detected_s=5.5) == 3.25
    assert recovery(5.0, 12.0, bins, regrouping[:2], detected_s=5.5) is None
    # Without a dip: as soon as it is known.
    assert recovery(6.0, 12.0, bins, FOUR, detected_s=6.5) == 0.5


RATES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 50.0, 99.0, 100.0, 5000.0]), max_size=60)


@settings(max_examples=200, deadline=None)
@given(RATES, st.floats(0, 60), st.floats(0, 60), st.floats(0, 60), st.floats(0, 30))
def test_a_recovery_is_after_the_detection_and_before_the_end(
    rates: list[float], begin_s: float, since_s: float, lasts_s: float, detection_s: float
) -> None:
    until_s, detected_s = begin_s + lasts_s, begin_s + detection_s
    bins = a_second_each(*rates)
    found = recovery(begin_s, until_s, bins, FOUR, since_s=since_s, detected_s=detected_s)
    assert found is None or detected_s - begin_s <= found <= until_s - begin_s


SEEDS = 200
BROKEN_S = 40.0


def poisson(seed: int, events: float, outage_s: int, share: float = 0.0) -> list[Bin]:
    """Bins of Poisson numbers with a mean, lower by a factor for a time after 40 s."""
    means = np.full(100, float(events))
    means[int(BROKEN_S) : int(BROKEN_S) + outage_s] *= share
    return a_second_each(*np.random.default_rng(seed).poisson(means))


@pytest.mark.parametrize("outage_s", [3, 10, 40])
@pytest.mark.parametrize(("events", "share"), [(10, 0), (30, 0), (100, 0), (100, 0.5), (1e4, 0.9)])
def test_of_poisson_traffic_the_outage_is_found(events: float, share: float, outage_s: int) -> None:
    """By chance an end is hidden or dragged out: by more than a bin in 3 % of the runs. Of ten
    events a bin, three empty ones are improbable enough: exp(-30)."""
    errors = []
    for seed in range(SEEDS):
        found = recovery(BROKEN_S, 100.0, poisson(seed, events, outage_s, share), FOUR)
        assert found is not None
        errors.append(abs(found - outage_s))
    assert max(errors) <= 3
    assert sum(error > 1 for error in errors) <= 0.03 * SEEDS


@pytest.mark.parametrize("events", [1, 3, 10, 100, 1e4])
def test_chance_is_no_dip(events: float) -> None:
    """In 0.3 % of the runs it may be taken for one."""
    found = [recovery(BROKEN_S, 100.0, poisson(seed, events, 0), FOUR) for seed in range(SEEDS)]
    assert sum(each != 0 for each in found) <= 0.01 * SEEDS + 1


def test_slow_waves_of_the_throughput_are_chance_too() -> None:
    """A first-order autoregression: a bin is like the one before by 0.7. Taken for independent
    bins, its sums would be a dip in 12 % of the runs."""
    found, after_an_outage = [], []
    for seed in range(SEEDS):
        random, wave, rates = np.random.default_rng(seed), 0.0, []
        for _ in range(100):
            wave = 0.7 * wave + random.normal(0, 0.1 * 0.51**0.5)
            rates.append(max(0.0, 100 * (1 + wave)))
        found.append(recovery(BROKEN_S, 100.0, a_second_each(*rates), FOUR))
        rates[40:50] = [0.0] * 10
        after_an_outage.append(recovery(BROKEN_S, 100.0, a_second_each(*rates), FOUR))
    assert sum(each != 0 for each in found) <= 0.04 * SEEDS
    assert sum(each is None or abs(each - 10) > 1 for each in after_an_outage) <= 0.06 * SEEDS


def test_poisson_traffic_that_does_not_come_back_never_recovers() -> None:
    for seed in range(SEEDS):
        assert recovery(BROKEN_S, 100.0, poisson(seed, 100, 60, 0.5), FOUR) is None
        assert recovery(BROKEN_S, 100.0, poisson(seed, 10, 60), FOUR) is None


def test_units_that_catch_up_or_flap_have_dips_of_their_own() -> None:
    """The bins since the recovery from the first fault count, and less what is caught up with."""
    bins = a_second_each(*[100] * 20, 0, 0, 5000, *[100] * 20, 0, 0, 0, *[100] * 10)
    assert recovery(20.0, 43.0, bins, FOUR) == 2.0
    assert recovery(43.0, 56.0, bins, FOUR, since_s=22.0) == 3.0
    assert recovery(43.0, 56.0, bins, FOUR) == 3.0
    bins = a_second_each(*[100] * 10, *[0, 0, 100, 100, 100] * 4)
    for begin_s in (10.0, 15.0, 20.0):
        assert recovery(begin_s, begin_s + 5, bins, FOUR, since_s=begin_s - 3) == 2.0


def test_a_flow_that_ends_is_no_longer_expected() -> None:
    """Two flows of 60 and 40 b/s; the fault stops both for 2 s; the second one ends at 11 s."""
    second = [40] * 6 + [0] * 2 + [40] * 3 + [0] * 9
    first = [60] * 6 + [0] * 2 + [60] * 12
    both = a_second_each(*(a + b for a, b in zip(first, second, strict=True)))
    ending = Ending(11.0, a_second_each(*second))
    assert recovery(6.0, 20.0, both, FOUR, endings=[ending]) == 2.0
    # A later fault that costs nothing, and one that costs 3 s of the flow that is left.
    assert recovery(9.0, 20.0, both, FOUR, endings=[ending]) == 0.0
    both[13:16] = [Bin(s, s + 1, 0.0) for s in range(13, 16)]
    assert recovery(13.0, 20.0, both, FOUR, since_s=8.0, endings=[ending]) == 3.0


def test_traffic_that_ends_long_after_the_fault_is_mended_is_no_dip_of_it() -> None:
    """Poisson traffic ends after 70 s, for whatever reason; the fault took from 20 to 25 s."""
    for seed in range(20):
        numbers = np.random.default_rng(seed).poisson([100] * 20 + [0] * 5 + [100] * 45 + [0] * 30)
        bins = a_second_each(*numbers)
        found = recovery(20.0, 100.0, bins, FOUR, mended_s=25.0)
        assert found is not None
        assert 4 <= found <= 7
        assert recovery(40.0, 100.0, bins, FOUR, since_s=25.0, mended_s=41.0) == 0.0

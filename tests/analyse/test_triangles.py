"""The occupancy over time, against sums of single triangles and the closed form of the peak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.analyse.peak import exact
from daqloom.analyse.triangles import Triangle, in_turn, occupancy, periodic

ATLAS = Triangle(5e6, 800e9, 25e9)


def one_triangle(event: Triangle, since_s: float) -> float:
    """Bytes of one event `since_s` after its arrival: what has come less what has left."""
    if since_s <= 0:
        return 0.0
    come = min(event.size_bytes, event.input_bps / 8 * since_s)
    return max(0.0, come - min(event.output_bps, event.input_bps) / 8 * since_s)


@given(
    arrivals=st.lists(st.floats(0, 20e-3), max_size=12),
    instants=st.lists(st.floats(-1e-3, 30e-3), min_size=1, max_size=20),
    output_gbps=st.floats(1, 1000),
)
def test_the_occupancy_is_the_sum_of_the_triangles_at_any_instant(arrivals, instants, output_gbps):
    event = Triangle(5e6, 800e9, output_gbps * 1e9)
    times, held = occupancy(event, arrivals)
    assert times.shape == held.shape == (3 * len(arrivals),)
    for instant in instants:
        expected = sum(one_triangle(event, instant - arrival) for arrival in arrivals)
        got = np.interp(instant, times, held, left=0.0, right=0.0) if arrivals else 0.0
        assert got == pytest.approx(expected, abs=1.0)


def test_the_peak_of_the_profile_is_the_closed_form_and_its_end_empty() -> None:
    _, held = occupancy(ATLAS, periodic(ATLAS, 12e3, until_s=5e-3))
    assert held.max() == pytest.approx(exact(ATLAS, 12e3, builders=32).peak_bytes)
    times, held = occupancy(ATLAS, [0.0, 1e-4])
    assert times[-1] == pytest.approx(1e-4 + 1.6e-3)
    assert held[-1] == pytest.approx(0.0, abs=1e-3)


def test_periodic_arrivals_are_one_period_apart_and_wait_for_the_event_before() -> None:
    assert periodic(ATLAS, 1e3, until_s=3.5e-3) == pytest.approx([0, 1e-3, 2e-3, 3e-3])
    # An event comes in within 50 µs: the second waits 40 µs, the third 10 µs, the last not.
    starts = in_turn(ATLAS, [0.0, 10e-6, 90e-6, 400e-6])
    assert starts == pytest.approx([0.0, 50e-6, 100e-6, 400e-6])

"""The formulas for the peak of the buffer, against published numbers and a brute-force fluid."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daqloom.analyse.answer import first_failing
from daqloom.analyse.peak import back_to_back, exact, published_peak
from daqloom.analyse.triangles import Triangle, in_turn, occupancy

GBPS = 1e9


def atlas(size_bytes: float) -> Triangle:
    return Triangle(size_bytes, input_bps=800 * GBPS, output_bps=25 * GBPS)


def fluid_peak(event: Triangle, rate_hz: float, events: int) -> float:
    """Peak of the buffer under periodic events, by moving fluid from instant to instant.

    Each event has a tap that is open from its arrival for S/I at rate I, and its own drain of
    rate O. The fluid is advanced from one change of a rate to the next; nothing is summed up in
    closed form. At least `events` events are sent, the first one into an empty buffer.
    """
    arrivals = [k / rate_hz for k in range(events)]
    held: dict[int, float] = {}
    now, peak = 0.0, 0.0
    poured = [0.0] * events
    in_rate, out_rate = event.input_bps / 8, event.output_bps / 8
    while now <= arrivals[-1] + event.rise_s:
        open_taps = [k for k in range(events) if arrivals[k] <= now + 1e-15]
        open_taps = [k for k in open_taps if poured[k] < event.size_bytes * (1 - 1e-12)]
        for k in open_taps:
            held.setdefault(k, 0.0)
        steps = [arrivals[k] - now for k in range(events) if arrivals[k] > now + 1e-15]
        steps += [(event.size_bytes - poured[k]) / in_rate for k in open_taps]
        for k, volume in held.items():
            net = (in_rate if k in open_taps else 0.0) - out_rate
            if net < 0 and volume > 1e-9:
                steps.append(volume / -net)
        if not steps:
            break
        step = max(min(steps), 0.0)
        for k in list(held):
            gain = in_rate * step if k in open_taps else 0.0
            poured[k] += gain
            held[k] = max(0.0, held[k] + gain - out_rate * step)
            if held[k] <= 1e-9 and k not in open_taps:
                del held[k]
        now += step
        peak = max(peak, sum(held.values()))
    return peak


@given(
    size_bytes=st.floats(1e3, 1e7),
    input_gbps=st.floats(1.0, 2000.0),
    output_share=st.floats(0.02, 1.5),
    load=st.floats(0.01, 0.999),
)
@example(size_bytes=5e6, input_gbps=800.0, output_share=25 / 800, load=0.6)
@example(size_bytes=1e6, input_gbps=800.0, output_share=25 / 800, load=0.01)
@example(size_bytes=1e6, input_gbps=100.0, output_share=1.0, load=0.5)  # nothing to buffer
@example(size_bytes=1e6, input_gbps=100.0, output_share=0.25, load=0.5)  # h·f/O just an integer?
@example(size_bytes=1e6, input_gbps=100.0, output_share=0.2, load=0.75)  # h·f/O = 3 exactly
def test_the_exact_peak_is_that_of_moved_fluid(size_bytes, input_gbps, output_share, load) -> None:
    event = Triangle(size_bytes, input_gbps * GBPS, input_gbps * output_share * GBPS)
    rate_hz = load * event.input_bps / (8 * size_bytes)
    at_once = math.ceil(event.length_s * rate_hz)

    answer = exact(event, rate_hz, builders=at_once + 1)

    assert first_failing(answer.conditions) is None
    expected = fluid_peak(event, rate_hz, events=at_once + 3)
    assert answer.peak_bytes == pytest.approx(expected, rel=1e-6, abs=1e-6 * size_bytes)


@given(
    size_bytes=st.floats(1e3, 1e7), output_share=st.floats(0.02, 0.99), load=st.floats(0.01, 0.999)
)
def test_no_other_number_of_events_sums_to_more(size_bytes, output_share, load) -> None:
    event = Triangle(size_bytes, 800 * GBPS, 800 * GBPS * output_share)
    rate_hz = load * event.input_bps / (8 * size_bytes)
    answer = exact(event, rate_hz, builders=1000)

    drained = event.output_bps / 8 / rate_hz
    sums = [n * (event.height_bytes - (n - 1) / 2 * drained) for n in range(1, 200)]
    assert answer.peak_bytes == pytest.approx(max(sums))
    printed = published_peak(event, rate_hz, answer.peak_bytes)
    assert printed.peak_bytes <= answer.peak_bytes * (1 + 1e-12)
    near = printed.peak_bytes >= 0.95 * answer.peak_bytes
    assert near == (first_failing(printed.conditions[1:]) is None)


def test_atlas_at_12_khz_and_5_mb_by_hand() -> None:
    # h = 5 MB·775/800 = 4.84375 MB; O/f = 3.125 GB/s / 12 kHz = 260.4166 kB.
    # exact: 4.84375/0.2604166 = 18.6, so 19 events: 19·4.84375 − 171·0.2604166 = 47.5 MB.
    # printed: ⌈5 MB/0.2604166 MB⌉ + 1 = ⌈19.2⌉ + 1 = 21: 21·4.84375 − 210·0.2604166 = 47.03 MB.
    sharp = exact(atlas(5e6), 12e3, builders=32)
    assert sharp.events == 19
    assert sharp.peak_bytes == pytest.approx(47.5e6)
    assert first_failing(sharp.conditions) is None

    printed = published_peak(atlas(5e6), 12e3, sharp.peak_bytes)
    assert printed.events == 21
    assert printed.peak_bytes == pytest.approx(47.03125e6)
    assert first_failing(printed.conditions) is None


def test_the_printed_formula_is_negative_at_low_load_and_near_the_exact_peak_above() -> None:
    # One event of 1 MB a millisecond drains in 0.32 ms: its own height, 1 MB·775/800, is the peak.
    # The printed N is ⌈0.32⌉ + 1 = 2: 2·0.96875 − 1·3.125 = −1.1875 MB.
    assert exact(atlas(1e6), 1e3, builders=32).peak_bytes == pytest.approx(0.96875e6)
    assert published_peak(atlas(1e6), 1e3, 0.96875e6).peak_bytes == pytest.approx(-1.1875e6)
    # 2.5 MB·8·10 kHz/25 Gb/s = 8 exactly.
    assert published_peak(atlas(2.5e6), 10e3, 1.0).events == 9


def test_the_printed_formula_applies_within_5_percent_of_the_exact_peak() -> None:
    # 2 MB at 9 kHz: h = 1.9375 MB, O/f = 347.2 kB, so 6 events: 6·1.9375 − 15·0.3472 = 6.417 MB.
    # The printed N is ⌈5.76⌉ + 1 = 7: 7·1.9375 − 21·0.3472 = 6.271 MB, 2.3 % less.
    sharp = exact(atlas(2e6), 9e3, builders=32)
    assert sharp.peak_bytes == pytest.approx(6.4167e6, rel=1e-4)
    assert first_failing(published_peak(atlas(2e6), 9e3, sharp.peak_bytes).conditions) is None
    # At 6 kHz: O/f = 520.8 kB; 4 events: 7.75 − 6·0.5208 = 4.625 MB. The printed N is ⌈3.84⌉ + 1 =
    # 5: 9.6875 − 10·0.5208 = 4.479 MB, 3.2 % less. At 4 kHz: 3·1.9375 − 3·0.78125 = 3.469 MB, and
    # with ⌈2.56⌉ + 1 = 4 events 3.0625 MB, 11.7 % less.
    assert first_failing(published_peak(atlas(2e6), 6e3, 4.625e6).conditions) is None
    low = first_failing(published_peak(atlas(2e6), 4e3, 3.46875e6).conditions)
    assert low.name == "within 5 % of exact"
    assert "3.062 MB" in low.sentence


def test_a_cap_cuts_the_top_off_each_triangle_and_holds_for_any_events() -> None:
    # 1 MB at 1 kHz is alone: the cap itself. 5 MB at 12 kHz with 1 MB a port: the youngest has 1 MB
    # after 8 MB/775 Gb/s, when S − c·O/(I − O) = 5 MB − 1 MB·25/775 = 4.96774 MB are not sent out
    # yet; the j-th before it holds 4.96774 MB − j·0.2604166 MB. So j ≤ 15 hold 1 MB (16 events),
    # and 0.801, 0.541, 0.280, 0.020 MB are left of j = 16 … 19.
    alone = exact(atlas(1e6), 1e3, builders=32, port_cap_bytes=2e5)
    assert alone.peak_bytes == 2e5
    assert first_failing(alone.conditions) is None
    many = exact(atlas(5e6), 12e3, builders=32, port_cap_bytes=1e6)
    left = sum(5e6 - 1e6 * 25 / 775 - j * 25e9 / 8 / 12e3 for j in range(16, 20))
    assert many.peak_bytes == pytest.approx(16e6 + left)
    failing = first_failing(many.conditions)
    assert failing.name == "one event in capped ports"
    # Too few builders, events at random: nothing but the caps bounds the sum.
    answer = back_to_back(atlas(5e6), builders=8, in_turn=False, port_cap_bytes=1e5)
    assert answer.peak_bytes == 8e5
    assert first_failing(answer.conditions) is None


@given(cap_bytes=st.floats(1e3, 1e7), rate_hz=st.floats(1e3, 19e3), builders=st.integers(1, 40))
def test_a_cap_only_lowers_the_peak_and_holds_for_each_builder(cap_bytes, rate_hz, builders):
    capped = exact(atlas(5e6), rate_hz, builders, cap_bytes).peak_bytes
    assert 0 < capped <= builders * cap_bytes * (1 + 1e-12)
    assert capped <= exact(atlas(5e6), rate_hz, builders).peak_bytes * (1 + 1e-12)
    assert capped <= exact(atlas(5e6), rate_hz, builders, cap_bytes * 1.5).peak_bytes * (1 + 1e-12)


def test_the_first_failing_condition_is_named_with_its_numbers() -> None:
    # 21 kHz of 5 MB are 840 Gb/s into 800 Gb/s; at 20 kHz the input is never idle.
    assert first_failing(exact(atlas(5e6), 20e3, builders=64).conditions).name == "f·S < I"
    failing = first_failing(exact(atlas(5e6), 21e3, builders=64).conditions)
    assert failing.name == "f·S < I"
    assert "840 Gb/s" in failing.sentence

    # 12 kHz · 1.6 ms = 19.2 events at once on 19 links.
    failing = first_failing(exact(atlas(5e6), 12e3, builders=19).conditions)
    assert failing.name == "overlapping events ≤ builders"
    assert "19.2 events" in failing.sentence
    assert first_failing(exact(atlas(5e6), 12e3, builders=20).conditions) is None

    # 20 kHz: N − 1 = 32 links of 25 Gb/s take all of the input.
    failing = first_failing(published_peak(atlas(5e6), 20e3, 77.5e6).conditions)
    assert failing.name == "I > (N-1)·O"
    assert "32 builder links" in failing.sentence


def test_events_back_to_back_are_the_exact_peak_with_enough_builders_in_turn() -> None:
    # Every S/I = 50 µs an event of 5 MB; each drains 25 Gb/s·50 µs = 156.25 kB meanwhile. 32 add
    # up: 32·4.84375 − 496·0.15625 = 77.5 MB = 5 MB/2·(32 − 1).
    answer = back_to_back(atlas(5e6), builders=32, in_turn=True)
    assert answer.peak_bytes == pytest.approx(77.5e6)
    assert first_failing(answer.conditions) is None
    crowded = first_failing(back_to_back(atlas(5e6), builders=31, in_turn=True).conditions)
    assert crowded.name == "I ≤ builders·O"
    at_random = first_failing(back_to_back(atlas(5e6), builders=32, in_turn=False).conditions)
    assert at_random.name == "events in turn"
    event = Triangle(1e6, 100 * GBPS, 100 * GBPS)
    assert exact(event, 1e3, builders=4).peak_bytes == 0.0


@given(st.lists(st.floats(0, 3e-3), min_size=1, max_size=60))
def test_no_arrivals_hold_more_than_events_back_to_back(arrivals: list[float]) -> None:
    event = atlas(5e6)
    _, held = occupancy(event, in_turn(event, sorted(arrivals)))
    assert held.max() <= back_to_back(event, builders=32, in_turn=True).peak_bytes * (1 + 1e-9)

"""Quantities: text with a unit in, SI numbers out, and back."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.scenario.quantities import FREQUENCY, RATE, SIZE, TIME, format_quantity


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (SIZE, "5 MB", 5_000_000),
        (SIZE, "5MB", 5_000_000),
        (SIZE, "1 MiB", 1 << 20),
        (SIZE, "1.5 KiB", 1536),
        (SIZE, "0 B", 0),
        (SIZE, "5e6 B", 5_000_000),
        (SIZE, "1e-3 GB", 1_000_000),
        (SIZE, " 100 B ", 100),
        (RATE, "25 Gb/s", 25_000_000_000),
        (RATE, "25 Gbps", 25_000_000_000),
        (RATE, "25 Gbit/s", 25_000_000_000),
        (RATE, "1 GB/s", 8_000_000_000),
        (RATE, "0.78 Gb/s", 780_000_000),
        (TIME, "170 ns", 170e-9),
        (TIME, "1 us", 1e-6),
        (TIME, "1 µs", 1e-6),
        (TIME, "200 ms", 0.2),
        (TIME, "1.5 min", 90),
        (TIME, "2 h", 7200),
        (TIME, "1e-2 h", 36),
        (FREQUENCY, "12 kHz", 12e3),
    ],
)
def test_a_quantity_with_its_unit_is_read_in_si(dimension, text, value):
    assert dimension.parse(text) == value


@pytest.mark.parametrize(
    ("dimension", "text", "reason"),
    [
        (SIZE, "5", "has no unit"),
        (SIZE, "5 M", "has no unit"),
        (SIZE, 5, "has no unit"),
        (SIZE, 5.0, "has no unit"),
        (SIZE, "-5 MB", "is negative"),
        (SIZE, "0.5 B", "whole number of B"),
        (SIZE, "5 Mb", "B is bytes, b is bits"),
        (SIZE, "5 m", "has no unit"),
        (SIZE, "5 MHz", "is not in B"),
        (SIZE, "nan B", "is not finite"),
        (SIZE, "inf B", "is not finite"),
        (SIZE, "1e400 B", "is not finite"),
        (SIZE, "2e15 B", "is out of range"),
        (SIZE, "", "is not a quantity"),
        (SIZE, "MB", "is not a quantity"),
        (SIZE, "five MB", "is not a quantity"),
        (SIZE, "5 MB MB", "is not a quantity"),
        (TIME, "five", 'is not a quantity; write it as a time such as "10 us"'),
        (SIZE, "9" * 100 + " B", "too long"),
        (SIZE, True, "is not a quantity"),
        (SIZE, None, "is not a quantity"),
        (SIZE, ["5 MB"], "is not a quantity"),
        (RATE, "1 kb/s", "at least 1 Mb/s"),
        (RATE, "25 GB", "is not in b/s"),
        (TIME, "1 m", "has no unit"),
        (TIME, "1 hs", "is not in s"),
        (TIME, "1 min h", "is not a quantity"),
        (TIME, "1.2.3 min", "is not a quantity"),
        (TIME, "100 h", "is out of range"),
        (SIZE, "1 min", "is not in B"),
        (FREQUENCY, "1 h", "is not in Hz"),
        (FREQUENCY, "12 ks", "is not in Hz"),
    ],
)
def test_other_text_is_refused_with_the_expected_form(dimension, text, reason):
    with pytest.raises(ValueError, match=reason):
        dimension.parse(text)


@pytest.mark.parametrize(
    ("dimension", "text", "pointed"),
    [
        (SIZE, "2,5 MB", "2.5 MB"),
        (RATE, "12,5 Gb/s", "12.5 Gb/s"),
        (TIME, " 0,5 s", "0.5 s"),
        (FREQUENCY, "12,5 kHz", "12.5 kHz"),
        (SIZE, "1,000,000 B", "1000000 B"),
        (SIZE, "2,5e6 B", "2.5e6 B"),
    ],
)
def test_a_comma_is_refused_with_the_form_that_is_read(dimension, text, pointed):
    with pytest.raises(ValueError, match=rf'has a comma; .* such as "{re.escape(pointed)}"$'):
        dimension.parse(text)
    dimension.parse(pointed)


GAUSSIAN = 'size_distribution = "gaussian" with size_spread = 0.2'
SPREAD = "and its spread as a key where there is one, such as"


@pytest.mark.parametrize(
    ("dimension", "text", "instead"),
    [
        (RATE, "50 GbE", '"50 Gb/s"'),
        (RATE, "100G", '"100 Gb/s"'),
        (RATE, "25 Gbits/s", '"25 Gb/s"'),
        (RATE, "2x100 Gb/s", '"200 Gb/s"; on uplinks write "100 Gb/s" and count = 2'),
        (RATE, "4 × 25GbE", '"100 Gb/s"; on uplinks write "25 Gb/s" and count = 4'),
        (SIZE, "3 MByte", '"3 MB"'),
        (SIZE, "64 Kibytes", '"64 KiB"'),
        (SIZE, "2x3 MB", '"6 MB"'),
        (SIZE, "3.2 MB ±20 %", f'"3.2 MB", {SPREAD} {GAUSSIAN}'),
        (TIME, "5 us +/- 1 us", f'"5 us", {SPREAD} spread = "1 us"'),
        (TIME, "10 minutes", '"10 min"'),
        (TIME, "5 usec", '"5 us"'),
        (FREQUENCY, "10 khz", '"10 kHz"'),
    ],
)
def test_a_quantity_as_people_write_it_is_refused_with_its_form(dimension, text, instead):
    with pytest.raises(ValueError, match=f"; write it as {re.escape(instead)}$"):
        dimension.parse(text)


@pytest.mark.parametrize("text", ["99x900 Tb/s", "2x2x2 Gb/s", "3 GB ± 2.3.4 %", "100GBASE-LR4"])
def test_no_form_is_offered_that_would_not_be_read(text):
    with pytest.raises(ValueError, match=r'write it as a rate such as "25 Gb/s"$'):
        RATE.parse(text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (5_000_000, "B", "5 MB"),
        (1500, "B", "1500 B"),
        (2000, "B", "2 kB"),
        (65_536, "B", "64 KiB"),
        (128_872, "B", "128.872 kB"),
        (0, "B", "0 B"),
        (25_000_000_000, "b/s", "25 Gb/s"),
        (170e-9, "s", "170 ns"),
        (0.0625, "s", "62.5 ms"),
        (12e3, "Hz", "12 kHz"),
    ],
)
def test_a_number_is_written_as_people_write_it(value, unit, text):
    assert format_quantity(value, unit) == text


@given(st.integers(0, 10**15))
def test_a_size_survives_being_written_and_read(size):
    assert SIZE.parse(SIZE.format(size)) == size


@given(st.integers(10**6, 10**15))
def test_a_rate_survives_being_written_and_read(rate):
    assert RATE.parse(RATE.format(rate)) == rate


@given(st.floats(1e-12, 1e4))
def test_a_time_survives_being_written_and_read_bit_for_bit(time):
    assert TIME.parse(TIME.format(time)) == time


@given(st.text(max_size=80))
def test_any_text_is_a_quantity_or_a_value_error(text):
    for dimension in (SIZE, RATE, TIME, FREQUENCY):
        try:
            value = dimension.parse(text)
        except ValueError:
            continue
        assert math.isfinite(value)
        assert 0 <= value <= dimension.maximum

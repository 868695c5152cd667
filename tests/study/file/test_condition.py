"""Conditions on results: reading, evaluation, and the sentence for each mistake."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.results.result import Result
from daqloom.scenario.quantities import format_quantity
from daqloom.scenario.schema.parts import Parts
from daqloom.study import StudyError
from daqloom.study.file.condition import Condition


def result(method: str = "simulate", **metrics: Any) -> Result:
    return Result(scenario="small", scenario_hash="00ff", method=method, metrics=metrics)


def holds(text: str, **metrics: Any) -> bool:
    return Condition.parse(text, "simulate").holds(result(**metrics))


@pytest.mark.parametrize(
    ("comparison", "below", "equal", "above"),
    [
        ("==", False, True, False),
        ("!=", True, False, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
    ],
)
def test_each_comparison(comparison: str, below: bool, equal: bool, above: bool) -> None:
    text = f"packets_dropped {comparison} 7"
    assert [holds(text, packets_dropped=n) for n in (6, 7, 8)] == [below, equal, above]
    assert holds(text.replace(" ", ""), packets_dropped=7) == equal


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("collection_latency_s.p99 <= 2 ms", 2e-3),
        ("collection_latency_s.p99 <= 0.002", 2e-3),
        ("collection_latency_s.p99 <= 2e-3", 2e-3),
        ("event_rate_hz >= 11.9 kHz", 11_900.0),
        ("buffer_peak_bytes.tor < 5 MB", 5_000_000),
        ("buffer_peak_bytes.tor < 4 MiB", 4_194_304),
        ("buffer_peak_bytes.tor < 5e6", 5e6),
        ("throughput_bps > 480 Gb/s", 480_000_000_000),
        ("throughput_bps > 500 kbit/s", 500_000),
        ("packets_dropped == 0", 0),
        ("packets_dropped < 10 packets", 10),
        ("retransmissions.fast < 1.5e3 segments", 1500.0),
        ("drop_fraction < 0.001", 0.001),
        ("drop_fraction < 1", 1),
        ("link_utilisation.access.down < .9", 0.9),
    ],
)
def test_numbers_stand_in_the_metrics_unit_or_carry_it(text: str, limit: float) -> None:
    (comparison,) = Condition.parse(text, "simulate").comparisons
    assert comparison.limit == limit


def test_all_comparisons_of_a_conjunction_must_hold_however_it_is_spaced() -> None:
    text = "packets_dropped == 0 and collection_latency_s.p99 <= 2 ms"
    assert holds(text, packets_dropped=0, collection_latency_s={"p99": 2e-3})
    assert not holds(text, packets_dropped=1, collection_latency_s={"p99": 1e-3})
    assert not holds(text, packets_dropped=0, collection_latency_s={"p99": 3e-3})
    spaced = Condition.parse("  packets_dropped==0   and  event_rate_hz>1 kHz ", "simulate")
    assert str(spaced) == "packets_dropped == 0 and event_rate_hz > 1 kHz"


NAMES = {
    "packets_dropped": "",
    "drop_fraction": "",
    "collection_latency_s.p99": "s",
    "event_rate_hz": "Hz",
    "buffer_peak_bytes.tor": "B",
    "link_utilisation.access.3.down": "",
}


@st.composite
def texts(draw: st.DrawFn) -> str:
    name, unit = draw(st.sampled_from(list(NAMES.items())))
    comparison = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
    number = draw(st.one_of(st.integers(0, 10**9), st.floats(1e-6, 1e3)))
    plain = not unit or draw(st.booleans()) or (unit == "B" and isinstance(number, float))
    written = repr(number) if plain else format_quantity(min(number, 1e4), unit)
    return f"{name} {comparison} {written}"


@given(st.lists(texts(), min_size=1, max_size=4))
def test_written_conditions_read_back_the_same(parts: list[str]) -> None:
    text = " and ".join(parts)
    condition = Condition.parse(text, "simulate")
    assert str(condition) == text
    assert Condition.parse(str(condition), "simulate") == condition


@pytest.mark.parametrize(
    ("text", "method", "sentence"),
    [
        ("packets_droped == 0", "simulate", 'not a metric; did you mean "packets_dropped"?'),
        ("collection_latency_s.p98 < 1", "simulate", 'did you mean "collection_latency_s.p9'),
        ("xyzzy == 0", "simulate", "docs/reference/metrics.md lists them"),
        ("drops_by_port.* == 0", "simulate", "is not a condition"),
        (
            "packets_dropped == 0",
            "analyse",
            "is not given by analyse, only by simulate (Ethernet), measure (in a laboratory, with "
            "a device under test); use",
        ),
        ("packets_dropped == 0", "guess", "known are analyse, simulate, measure"),
        ("packets_dropped", "simulate", "write METRIC COMPARISON NUMBER"),
        ("packets_dropped = 0", "simulate", "write METRIC COMPARISON NUMBER"),
        ("0 == packets_dropped", "simulate", "is not a metric"),
        ("0 < packets_dropped < 5", "simulate", "is not a condition"),
        ("", "simulate", "is not a condition"),
        ("packets_dropped == 0 and ", "simulate", "is not a condition"),
        ("packets_dropped == 0 or event_rate_hz > 1", "simulate", "is not a condition"),
        ("packets_dropped == zero", "simulate", "a number of packets, 0 or more"),
        ("packets_dropped == -1", "simulate", "a number of packets, 0 or more"),
        ("packets_dropped == nan", "simulate", "a number of packets, 0 or more"),
        ("packets_dropped == 1e999", "simulate", "is not finite"),
        ("drop_fraction < 1 %", "simulate", "a plain number, 0 or more"),
        ("collection_latency_s.p99 < 2 MB", "simulate", "is not in s"),
        ("throughput_bps > 5 GHz", "simulate", "is not in b/s"),
        ("event_rate_hz > -1", "simulate", "has no unit"),
        ("packets_dropped == __import__('os').getpid()", "simulate", "is not understood"),
        ("packets_dropped == " + "1" * 2000, "simulate", "at most 1000 characters"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, method: str, sentence: str) -> None:
    with pytest.raises(StudyError) as caught:
        Condition.parse(text, method)
    assert sentence in str(caught.value)


def test_a_metric_has_to_be_given_by_the_method_for_the_kind_of_system() -> None:
    text = "barrier_share < 0.5 and control_messages > 0"
    assert str(Condition.parse(text, "measure", Parts.SHIFT)) == text
    # A study that varies the protocol has points of several kinds: one that has it is enough.
    assert str(Condition.parse(text, "simulate", Parts.BUILDERS)) == text
    message = r"barrier_share is not given by measure for this system \(DAQPIPE\), only by "
    with pytest.raises(StudyError, match=message):
        Condition.parse(text, "measure", Parts.DAQPIPE)
    with pytest.raises(StudyError, match=r'did you mean "link_utilisation\.access\.down"'):
        holds("link_utilisation.acess.down < 0.9", link_utilisation={"access.down": 0.5})


@given(st.text(max_size=80))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = Condition.parse(text, "simulate")
    except StudyError:
        return
    assert Condition.parse(str(condition), "simulate") == condition


@pytest.mark.parametrize("comparison", ["<=", "<", "==", "!=", ">", ">="])
def test_a_number_that_the_result_lacks_satisfies_nothing(comparison: str) -> None:
    assert not holds(f"collection_latency_s.p99 {comparison} 2 ms", packets_dropped=0)

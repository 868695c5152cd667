"""One factor between two methods, and sentences on their differences."""

import math

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

from daqloom.report.study import methods as study_methods
from daqloom.study import StudyError
from daqloom.study.conclusions.agreement import Load, Verdict, agreements, fit_scale, verdict
from daqloom.study.file.points import at_steps, load
from support.peak_studies import PEAK, study


@given(st.floats(-1e3, 1e3), st.lists(st.floats(0.1, 1e3), min_size=2, max_size=20))
def test_a_known_factor_comes_back(k: float, a: list[float]) -> None:
    found = fit_scale(a, k * np.array(a))
    assert found.k == pytest.approx(k, rel=1e-12, abs=1e-300)
    assert found.residuals == pytest.approx(0, abs=1e-9 * max(1, abs(k)) * max(a))


def test_the_factor_and_its_error_by_hand_of_two_points_or_more() -> None:
    # Σ a b = 1·1 + 2·4 = 9, Σ a² = 5: k = 1.8; residuals -0.8, 0.4: s² = 0.8 over 1.
    plain = fit_scale([1, 2], [1, 4])
    assert (plain.k, plain.error) == pytest.approx((1.8, math.sqrt(0.8 / 5)))
    assert plain.residuals == pytest.approx([-0.8, 0.4])
    with pytest.raises(StudyError, match="at least two points"):
        fit_scale([1], [1])
    with pytest.raises(StudyError, match="at least two points"):
        fit_scale([0, 0], [1, 2])


def test_the_interval_covers_at_the_nominal_rate() -> None:
    random = np.random.default_rng(5)
    a = np.linspace(5e6, 50e6, 8)
    replicas, covered = 1000, 0
    for _ in range(replicas):
        low, high = fit_scale(a, 1.5 * a + random.normal(0, 2e6, 8)).interval()
        covered += low <= 1.5 <= high
    assert covered / replicas == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / replicas))


NAMES = ("the formula", "the simulation")


def compared(one: float, other: float, factor: float) -> Verdict:
    return verdict(one, other, 0.5, 0.05, factor, NAMES)


@pytest.mark.parametrize(
    ("values", "load", "ratio", "name", "sentence"),
    [
        ((10, 30), 0.1, 3, Load.LOW, "At 10 % of capacity the simulation gives 3 times the value of"
         " the formula: at low load bursts seldom overlap"),
        ((10, 10.4), 0.5, 1.04, Load.MEDIUM, "they agree within 5 %."),
        ((10, 13), 0.5, 1.3, Load.MEDIUM, "the load does not explain it"),
        ((10, 25), 0.95, 2.5, Load.SATURATED, "near saturation queues grow with the length of the"
         " run"),
        ((10, 99), 1.2, 9.9, Load.SATURATED, "above capacity"),
        ((0, 0), 0.0, 1, Load.LOW, "they agree"),
    ],
)  # fmt: skip
def test_verdicts_name_the_load_at_which_methods_differ(
    values: tuple[float, float], load: float, ratio: float, name: Load, sentence: str
) -> None:
    found = verdict(*values, load, 0.05, 1.0, NAMES)
    assert (found.ratio, found.load) == (pytest.approx(ratio), name)
    assert found.parts == ("they agree" not in sentence)
    assert sentence in found.sentence


def test_a_known_factor_between_methods_does_not_part_them_and_zero_does() -> None:
    expected = compared(10, 15.2, factor=1.5)
    assert not expected.parts
    assert "gives 1.52 times" in expected.sentence
    assert "where 1.5 is usual" in expected.sentence
    assert compared(10, 10, factor=1.5).parts
    found = compared(0, 3, factor=1.0)
    assert found.parts
    assert found.ratio == math.inf


def test_one_factor_between_two_methods_through_all_or_some_points() -> None:
    [pair] = agreements(study())
    assert pair.methods == ("analyse", "simulate")
    assert pair.scale.k == pytest.approx(1.5)
    assert pair.scale.residuals == pytest.approx(0.0, abs=1e-6)
    assert len(pair.at) == 15
    assert pair.left_out == {"saturated": 1}
    assert pair.parting == 0
    [_, within, *_] = study_methods.sentences(pair)
    assert within == "All points are within 10 % of that: one factor describes them."
    dataset = study()
    [pair] = agreements(dataset, below=10e6)
    both = dataset[PEAK].mean("seed").max("by")
    left = (both > 10e6) & ~dataset["saturated"].any(["by", "seed"])
    assert pair.left_out["above the limit"] == int(left.sum()) > 0
    assert len(pair.at) == 15 - int(left.sum())
    [pair] = agreements(at_steps(dataset, {"event.rate": 6e3}))
    assert {point["event.rate"] for point in pair.at} == {6e3}
    with pytest.raises(StudyError, match="7 kHz is not a step of this study; its steps are 2 kHz,"):
        at_steps(dataset, {"event.rate": 7e3})


def test_differences_are_explained_by_the_load_of_the_bound_or_the_links() -> None:
    dataset = study()
    dataset[PEAK].loc[{"by": "simulate", "event.rate": 2e3}] *= 3
    [pair] = agreements(dataset)
    low = [v for v in pair.verdicts if v and v.load is Load.LOW]  # 2 of 20 kHz
    assert len(low) == 4
    assert all(verdict.parts for verdict in low)
    assert pair.load.min() == pytest.approx(0.1)
    sentences = " ".join(study_methods.sentences(pair))
    assert "4 of 15 points are not within 10 % of that: 4 at low load" in sentences
    dataset = study().drop_vars("event_rate_bound_hz")
    assert load(dataset) is None
    down = xarray.full_like(dataset[PEAK], 0.25)
    dataset["link_utilisation.access.down"] = down
    dataset["link_utilisation.uplink.down"] = down.where(dataset["event.rate"] < 10e3, 0.5)
    found = load(dataset)
    assert found is not None
    assert found.values[:, 0].tolist() == [0.25, 0.25, 0.5, 0.5]

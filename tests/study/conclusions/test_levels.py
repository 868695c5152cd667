"""Return levels of a study's dataset: known numbers in, known levels out."""

import math

import numpy as np
import pytest
import xarray

from daqloom.deployment.scenarios import load
from daqloom.report.study import levels as study_levels
from daqloom.study import StudyError
from daqloom.study.conclusions import as_json
from daqloom.study.conclusions.levels import fit_blocks, levels, period
from daqloom.study.methods import methods
from daqloom.study.statistics.gev import draw, quantile
from daqloom.study.statistics.return_levels import block_maxima, return_level
from support.peak_studies import (
    COURSE,
    NEEDED,
    PEAK,
    RATES,
    SIZES,
    TRUE,
    gumbel,
    study,
    with_course,
)

MODEL = "network.switch.tor.model"


def test_seeds_are_pooled_and_the_level_is_that_of_the_distribution() -> None:
    dataset = with_course(study([12e3], [5e6]), gumbel())
    [point] = levels(dataset, [period("hour")]).points
    # 80 slices of 8 s: 0.1 s each, so that an hour is exceeded with 0.1 / 3600.
    assert point.block_s == pytest.approx(0.1)
    assert (point.fit.maxima.size, point.observed_s) == (240, 24.0)
    [level] = point.levels
    true = quantile(0.1 / 3600, TRUE)
    assert level.low < true < level.high
    assert level.value == pytest.approx(true, rel=0.2)


def with_needed(dataset: xarray.Dataset, slices: np.ndarray) -> xarray.Dataset:
    """Add the course of the buffer that a shared-memory switch needed."""
    held = dataset[COURSE]
    needed = held.copy(data=np.broadcast_to(slices, held.shape).copy())
    needed[{"by": 0}] = math.nan
    peak = dataset[PEAK].copy()
    return dataset.assign({f"course.{NEEDED}": needed, NEEDED: peak})


def test_levels_are_of_the_buffer_that_the_switch_needed_where_that_is_known() -> None:
    held = gumbel()
    dataset = with_course(study([12e3], [5e6]), held)
    ideal = levels(dataset, [period("hour")])
    assert ideal.metrics == (PEAK,)
    [answer, meant] = study_levels.sentences(dataset, ideal, ideal.points[0])[:2]
    assert " an ideal buffer of " in answer
    assert "A shared-memory switch needs more" in meant

    # 7 cells of 256 B for a frame of 1518 B, and half as much free as is used.
    factor = 1.5 * 7 * 256 / 1518
    dataset = with_needed(dataset, factor * held)
    nominal = levels(dataset, [period("hour")])
    assert nominal.metrics == (NEEDED,)
    [one], [other] = ideal.points[0].levels, nominal.points[0].levels
    assert other.value == pytest.approx(factor * one.value, rel=1e-3)
    [answer, meant] = study_levels.sentences(dataset, nominal, nominal.points[0])[:2]
    assert " a buffer of " in answer
    assert "the total buffer of the simulated switch" in meant
    assert "buffer needed by the top-of-rack switch (MB)" in study_levels.table(dataset, nominal)[0]


def test_each_switch_of_a_grid_has_levels_of_its_own_buffer() -> None:
    """One of two switches has what it needed, twice what it held; the other has what was held."""
    held = gumbel()
    switches = np.array(["infinite", "qfx5120-48y"])
    dataset = with_needed(with_course(study([12e3], [5e6]), held), 2 * held)
    dataset = dataset.expand_dims({MODEL: 2}, axis=1).assign_coords({MODEL: (MODEL, switches)})
    is_real = dataset[MODEL] != "infinite"
    dataset[f"course.{NEEDED}"] = dataset[f"course.{NEEDED}"].where(is_real)
    found = levels(dataset, [period("hour")], replicas=0)
    assert found.metrics == (NEEDED, PEAK)
    ideal, real = found.points
    assert (ideal.metric, real.metric) == (PEAK, NEEDED)
    assert real.levels[0].value == pytest.approx(2 * ideal.levels[0].value, rel=1e-3)
    assert as_json.levels("s", found)["metric"] is None

    answer, along, of_the_switch, of_ideal = study_levels.sentences(dataset, found, real)[:4]
    assert " a buffer of " in answer
    assert ") with qfx5120-48y, " in along
    assert ") with infinite (ideal buffer)." in along
    assert of_the_switch.startswith('Levels marked "of the switch" in the table are of the total')
    assert of_ideal.startswith('Levels marked "ideal" in the table are of an ideal buffer')
    head, rows = study_levels.table(dataset, found)
    column = head.index("buffer")
    assert [row[column] for row in rows] == ["ideal", "of the switch"]
    assert {len(row) for row in rows} == {len(head)}


def test_a_point_that_dropped_packets_needs_no_buffer_of_its_own() -> None:
    dataset = with_needed(with_course(study([6e3, 12e3], [5e6]), gumbel()), gumbel())
    dataset[f"course.{NEEDED}"][{"event.rate": 0}] = math.nan
    lossy = xarray.zeros_like(dataset[PEAK])
    lossy[{"event.rate": 0}] = 3
    dataset["packets_dropped"] = lossy
    assert levels(dataset, [period("hour")], replicas=0).metrics == (NEEDED,)


def test_slices_that_are_alike_are_merged_into_twenty_blocks_or_more_of_one_length() -> None:
    # Every value four times in a row: blocks of four slices are the first without likeness.
    own = draw(TRUE, 60, np.random.default_rng(3)).reshape(3, 20)
    fit, block_s = fit_blocks(np.repeat(own, 4, axis=1), np.full(3, 8.0))
    assert (fit.maxima.size, block_s) == (60, pytest.approx(0.4))
    assert sorted(fit.maxima) == sorted(own.ravel())
    fit, block_s = fit_blocks(gumbel(), np.full(3, 8.0))
    assert (fit.maxima.size, block_s) == (240, pytest.approx(0.1))
    rising = gumbel(1) + np.linspace(0, 60e6, 80)  # neighbours are alike at any length
    fit, block_s = fit_blocks(rising, np.array([8.0]), replicas=19)
    assert (fit.maxima.size, block_s) == (20, pytest.approx(0.4))
    assert any("correlated" in warning for warning in fit.warnings)
    # 8 s in slices of 0.1 s, 16 s in slices of 0.2 s: 40 pairs and 80 slices, all of 0.2 s.
    slices = gumbel(2)
    fit, block_s = fit_blocks(slices, np.array([8.0, 16.0]))
    assert block_s == pytest.approx(0.2)
    pairs = slices[0].reshape(40, 2).max(axis=1)
    assert fit.maxima == pytest.approx(np.concatenate([pairs, slices[1]]))


def test_points_that_cannot_be_trusted_are_left_out_and_named() -> None:
    dataset = with_course(study(), gumbel())
    dataset["equilibrium"].loc[{"by": "simulate", "event.rate": 2e3, "seed": 2}] = "drifting"
    dataset[COURSE].loc[{"by": "simulate", "event.rate": 6e3, "event.size": 1e6}] = np.nan
    drops = xarray.zeros_like(dataset[PEAK])
    drops.loc[{"by": "simulate", "event.rate": 6e3, "event.size": 2e6, "seed": 1}] = 1
    found = levels(dataset.assign(packets_dropped=drops), replicas=0)
    reasons = {(one.at["event.rate"], one.at["event.size"]): one.reason for one in found.left_out}
    assert reasons == {(2e3, size): "drifting" for size in SIZES} | {
        (6e3, 1e6): "not computed",
        (6e3, 2e6): "dropped packets",
        (18e3, 5e6): "saturated",
    }
    assert len(found.points) == 16 - len(reasons)
    notes = {(row[0], row[1]): row[-1] for row in study_levels.table(dataset, found)[1]}
    assert notes["18 kHz", "5 MB"] == "saturated"
    assert "2 saturated" not in " ".join(notes.values())


def test_levels_are_of_chosen_steps_of_a_study_with_courses() -> None:
    dataset = with_course(study(), gumbel())
    found = levels(dataset, replicas=0, at=[{"event.rate": [2e3]}, {"event.size": [1e6]}])
    assert {(p.at["event.rate"], p.at["event.size"]) for p in found.points} == {
        *((2e3, size) for size in SIZES),
        *((rate, 1e6) for rate in RATES),
    }
    with pytest.raises(StudyError, match=r"event\.rate = 5 kHz is not a step.*2 kHz, 6 kHz"):
        levels(dataset, at={"event.rate": [5e3]})
    with pytest.raises(StudyError, match="course=True"):
        levels(study())
    searched = with_course(study(), gumbel()).assign(boundary=study()[PEAK])
    with pytest.raises(StudyError, match="fixed points"):
        levels(searched)


def test_a_peak_that_is_constant_or_set_by_a_limit_is_described_as_such() -> None:
    slices = np.minimum(gumbel(), 52e6)  # the upper tail ends at 52 MB
    dataset = with_course(study([12e3], [5e6]), slices)
    found = levels(dataset, replicas=0)
    [point] = found.points
    assert point.limit == pytest.approx(52e6, rel=0.01)
    [answer, *_] = study_levels.sentences(dataset, found, point)
    assert answer.startswith("At 12 kHz × 5 MB peaks saturate near 52")
    assert study_levels.table(dataset, found)[1][0][4].endswith("(limit)")
    dataset = with_course(study([12e3], [5e6]), np.full_like(gumbel(), 52e6))
    found = levels(dataset, replicas=0)
    [point] = found.points
    [answer, *more] = study_levels.sentences(dataset, found, point)
    assert answer == (
        f"At 12 kHz × 5 MB the peak is 52 MB in each of the {point.fit.maxima.size} blocks "
        "simulated: without any spread no distribution can be fitted, and nothing is known of "
        "longer runs."
    )
    assert not any("equal" in sentence for sentence in more), "it occurs once"


@pytest.mark.parametrize(
    ("text", "length_s", "often"),
    [
        ("hour", 3600.0, "once an hour"),
        ("fill", 28800.0, "once a fill of 8 h"),
        ("90 min", 5400.0, "once in 90 min"),
        ("2 d", 172800.0, "once in 2 d"),
    ],
)
def test_periods_are_read_in_everyday_words(text: str, length_s: float, often: str) -> None:
    found = period(text, fill_s=8 * 3600.0)
    assert (found.length_s, found.often) == (length_s, often)


@pytest.mark.parametrize("text", ["", "fortnight", "0 h", "-1 h", "3", "1e3 h", "h"])
def test_other_texts_than_periods_are_refused(text: str) -> None:
    with pytest.raises(StudyError, match="is not a period"):
        period(text)


@pytest.mark.parametrize("long_s", [5.0, pytest.param(20.0, marks=pytest.mark.soak)])
def test_the_rest_of_a_run_peaks_within_the_fit_of_its_start(long_s: float) -> None:
    fitted_s = long_s / 10
    rack = {
        "builders.units": 16,
        "network.links.source.rate": "40 Gb/s",
        "network.links.uplink.rate": "160 Gb/s",
        "event.rate": "4 kHz",
        "network.switch.tor.model": "infinite",
        "run.warmup": "200 ms",
        "run.duration": f"{0.2 + long_s:g} s",
    }
    result = methods.simulate(load("small-rack", rack), seed=1)
    bins = np.asarray(result.series["tor_occupancy"]["max_bytes"], dtype=float)
    start, rest = np.split(bins, [bins.size // 10])
    fit, block_s = fit_blocks(block_maxima(start, 80)[None], np.array([fitted_s]))
    rest_s = long_s - fitted_s
    # Peaks beyond the level of a period T come as a Poisson process, 1/T a second: the greatest of
    # the rest lies below that of T with exp(-rest/T), hence above the level of rest/3.69 with
    # 97.5 % and below that of 39.5 rest with 97.5 %.
    low = return_level(fit, block_s, rest_s / 3.69).low
    high = return_level(fit, block_s, rest_s * 39.5).high
    level = return_level(fit, block_s, rest_s).value
    assert low < rest.max() < high
    assert rest.max() == pytest.approx(level, rel=0.25)
    assert rest.max() > start.max()  # else nothing was extrapolated

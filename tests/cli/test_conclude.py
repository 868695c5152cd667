"""Levels, surfaces and factors of a study's dataset: known numbers in, known conclusions out."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from daqloom.cli.main import app
from daqloom.report.study import levels as study_levels
from daqloom.report.study import methods as study_methods
from daqloom.report.study import surface as study_surface
from daqloom.report.study.report import findings
from daqloom.study import StudyError
from daqloom.study.agreement import Load, agreements
from daqloom.study.executor import InProcess
from daqloom.study.file import load_study
from daqloom.study.fits import fits
from daqloom.study.gev import Gev, draw, quantile
from daqloom.study.levels import fit_blocks, levels, period
from daqloom.study.points import answers, at_steps, load
from daqloom.study.runner import run
from daqloom.study.store import Store

PEAK, COURSE = "buffer_peak_bytes.tor", "course.buffer_peak_bytes.tor"
NEEDED = "buffer_needed_bytes.tor"
RATES = np.array([2e3, 6e3, 12e3, 18e3])
SIZES = np.array([1e6, 2e6, 4e6, 5e6])
TRUE = Gev(50e6, 4e6, 0.0)


def study(rates: Any = RATES, sizes: Any = SIZES, seeds: int = 3, **more: Any) -> xarray.Dataset:
    """Formula rate·size²/1e10 + size bytes; simulation 1.5 times that; capacity 20 kHz."""
    x, y = np.meshgrid(rates, sizes, indexing="ij")
    formula = np.repeat((x * y**2 / 1e10 + y)[..., None], seeds, axis=-1)
    dims = ("by", "event.rate", "event.size", "seed")
    values = np.stack([formula, 1.5 * formula])
    full = np.broadcast_to((x > 15e3)[None, ..., None] & (y > 4.5e6)[None, ..., None], values.shape)
    return xarray.Dataset(
        {
            PEAK: (dims, values, {"units": "B"}),
            "event_rate_bound_hz": (dims, np.full_like(values, 20e3), {"units": "Hz"}),
            "saturated": (dims, full.copy()),
            "equilibrium": (dims, np.full(values.shape, "", dtype="<U10")),
            "run_s": (dims, np.full_like(values, 8.0), {"units": "s"}),
        }
        | more,
        coords={
            "by": ["analyse", "simulate"],
            "event.rate": ("event.rate", rates, {"units": "Hz"}),
            "event.size": ("event.size", sizes, {"units": "B"}),
            "seed": range(1, seeds + 1),
        },
        attrs={
            "study": "s",
            "title": "A study",
            "scenario": "atlas-lab",
            "operating_point": {"event.rate": 12e3, "event.size": 5e6},
        },
    )


def with_course(dataset: xarray.Dataset, slices: np.ndarray) -> xarray.Dataset:
    """The same slices, shape (seeds, 80), at every simulated point."""
    course = np.full((*dataset[PEAK].shape, 80), np.nan)
    course[1] = slices
    dims = (*dataset[PEAK].dims, "slice")
    return dataset.assign({COURSE: (dims, course, {"units": "B"})})


def gumbel(seeds: int = 3, seed: int = 1) -> np.ndarray:
    return draw(TRUE, seeds * 80, np.random.default_rng(seed)).reshape(seeds, 80)


# --- Return levels -------------------------------------------------------------------------------


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
    """As `with_course`, of what a shared-memory switch needed."""
    held = dataset[COURSE]
    needed = held.copy(data=np.broadcast_to(slices, held.shape).copy())
    needed[{"by": 0}] = math.nan
    peak = dataset[PEAK].copy()
    return dataset.assign({f"course.{NEEDED}": needed, NEEDED: peak})


def test_levels_are_of_the_buffer_that_the_switch_needed_where_that_is_known() -> None:
    held = gumbel()
    dataset = with_course(study([12e3], [5e6]), held)
    ideal = levels(dataset, [period("hour")])
    assert ideal.metric == PEAK
    [answer, meant] = study_levels.sentences(dataset, ideal, ideal.points[0])[:2]
    assert " an ideal buffer of " in answer
    assert "A shared-memory switch needs more" in meant

    # 7 cells of 256 B for a frame of 1518 B, and half as much free as is used.
    factor = 1.5 * 7 * 256 / 1518
    dataset = with_needed(dataset, factor * held)
    nominal = levels(dataset, [period("hour")])
    assert nominal.metric == NEEDED
    [one], [other] = ideal.points[0].levels, nominal.points[0].levels
    assert other.value == pytest.approx(factor * one.value, rel=1e-3)
    [answer, meant] = study_levels.sentences(dataset, nominal, nominal.points[0])[:2]
    assert " a buffer of " in answer
    assert "the total buffer of the simulated switch" in meant
    assert "buffer needed by the top-of-rack switch (MB)" in study_levels.head(dataset, nominal)


def test_levels_are_not_of_two_kinds_of_buffer() -> None:
    """A study of two switches, of which one tells what it needed: both are of what was held."""
    dataset = with_course(study([6e3, 12e3], [5e6]), gumbel())
    dataset = with_needed(dataset, gumbel())
    assert levels(dataset, [period("hour")], replicas=0).metric == NEEDED
    dataset[f"course.{NEEDED}"][{"event.rate": 0}] = math.nan
    assert levels(dataset, [period("hour")], replicas=0).metric == PEAK
    # But a point that dropped packets has no level, and need not tell.
    lossy = xarray.zeros_like(dataset[PEAK])
    lossy[{"event.rate": 0}] = 3
    dataset["packets_dropped"] = lossy
    assert levels(dataset, [period("hour")], replicas=0).metric == NEEDED


def test_slices_that_are_alike_are_merged() -> None:
    # Every value four times in a row: blocks of four slices are the first without likeness.
    own = draw(TRUE, 60, np.random.default_rng(3)).reshape(3, 20)
    fit, block_s = fit_blocks(np.repeat(own, 4, axis=1), np.full(3, 8.0))
    assert (fit.maxima.size, block_s) == (60, pytest.approx(0.4))
    assert sorted(fit.maxima) == sorted(own.ravel())
    fit, block_s = fit_blocks(gumbel(), np.full(3, 8.0))
    assert (fit.maxima.size, block_s) == (240, pytest.approx(0.1))


def test_never_fewer_than_twenty_blocks_and_then_a_warning() -> None:
    rising = gumbel(1) + np.linspace(0, 60e6, 80)  # neighbours are alike at any length
    fit, block_s = fit_blocks(rising, np.array([8.0]), replicas=19)
    assert (fit.maxima.size, block_s) == (20, pytest.approx(0.4))
    assert any("correlated" in warning for warning in fit.warnings)


def test_runs_of_different_length_give_blocks_of_one_length() -> None:
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
    notes = {(row[0], row[1]): row[-1] for row in study_levels.rows(dataset, found)}
    assert notes["18 kHz", "5 MB"] == "saturated"
    assert "2 saturated" not in " ".join(notes.values())


def test_levels_at_chosen_steps_only() -> None:
    dataset = with_course(study(), gumbel())
    found = levels(dataset, replicas=0, at=[{"event.rate": [2e3]}, {"event.size": [1e6]}])
    assert {(p.at["event.rate"], p.at["event.size"]) for p in found.points} == {
        *((2e3, size) for size in SIZES),
        *((rate, 1e6) for rate in RATES),
    }
    with pytest.raises(StudyError, match=r"event\.rate = 5 kHz is not a step.*2 kHz, 6 kHz"):
        levels(dataset, at={"event.rate": [5e3]})


def test_a_peak_that_a_limit_sets_is_told_as_that_limit() -> None:
    slices = np.minimum(gumbel(), 52e6)  # the upper tail ends at 52 MB
    dataset = with_course(study([12e3], [5e6]), slices)
    found = levels(dataset, replicas=0)
    [point] = found.points
    assert point.limit == pytest.approx(52e6, rel=0.01)
    [answer, *_] = study_levels.sentences(dataset, found, point)
    assert answer.startswith("At 12 kHz × 5 MB peaks saturate near 52")
    assert study_levels.rows(dataset, found)[0][4].endswith("(limit)")


def test_of_a_peak_that_is_always_the_same_nothing_is_said_of_longer_runs() -> None:
    dataset = with_course(study([12e3], [5e6]), np.full_like(gumbel(), 52e6))
    found = levels(dataset, replicas=0)
    [point] = found.points
    [answer, *more] = study_levels.sentences(dataset, found, point)
    assert answer == (
        f"At 12 kHz × 5 MB the peak is 52 MB in each of the {point.fit.maxima.size} blocks "
        "simulated: without any spread no distribution can be fitted, and nothing is known of "
        "longer runs."
    )
    assert not any("equal" in sentence for sentence in more), "it is said once"


def test_a_search_and_a_study_without_courses_have_no_levels() -> None:
    with pytest.raises(StudyError, match="course=True"):
        levels(study())
    searched = with_course(study(), gumbel()).assign(boundary=study()[PEAK])
    with pytest.raises(StudyError, match="fixed points"):
        levels(searched)


@pytest.mark.parametrize(
    ("text", "length_s", "often"),
    [
        ("hour", 3600.0, "once an hour"),
        ("fill", 28800.0, "once a fill of 8 h"),
        ("90 min", 5400.0, "once in 90 min"),
        ("2 d", 172800.0, "once in 2 d"),
    ],
)
def test_periods_are_read_as_people_say_them(text: str, length_s: float, often: str) -> None:
    found = period(text, fill_s=8 * 3600.0)
    assert (found.length_s, found.often) == (length_s, often)


@pytest.mark.parametrize("text", ["", "fortnight", "0 h", "-1 h", "3", "1e3 h", "h"])
def test_what_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="is not a period"):
        period(text)


# --- Surfaces ------------------------------------------------------------------------------------


def test_each_method_has_its_surface_and_predicts_with_it() -> None:
    formula, simulation = fits(study())
    for fit, factor in ((formula, 1.0), (simulation, 1.5)):
        assert fit.surface.coefficients["x*y**2"].value == pytest.approx(factor / 1e10)
        assert fit.left_out == {"saturated": 1}
        assert fit.surface.r_squared == pytest.approx(1.0)
        inside = fit.predict({"event.rate": 12e3, "event.size": 5e6})
        assert inside.value == pytest.approx(factor * 35e6)  # 12e3 · 25e12 / 1e10 + 5e6
        assert inside.known == pytest.approx(inside.value)
        assert not inside.extrapolated
        beyond = fit.predict({"event.rate": 20e3, "event.size": 8e6})
        assert beyond.value == pytest.approx(factor * 136e6)
        assert beyond.extrapolated
        assert beyond.known is None


def test_only_points_below_a_limit_are_fitted() -> None:
    formula, simulation = fits(study(), terms="1 + y", below=4.5e6)
    # Formula, 1 MB: 1.2, 1.6, 2.2, 2.8 MB; 2 MB: 2.8, 4.4, 6.8, 9.2 MB; 4 MB: 7.2 MB and more.
    assert formula.z.tolist() == pytest.approx([1.2e6, 2.8e6, 1.6e6, 4.4e6, 2.2e6, 2.8e6])
    assert formula.left_out == {"saturated": 1, "above the limit": 9}
    assert simulation.left_out == {"saturated": 1, "above the limit": 10}


def test_points_that_were_left_out_are_predicted_as_well_as_they_can_be() -> None:
    dataset = study()
    noise = np.random.default_rng(5).normal(0, 1e5, dataset[PEAK].shape)
    noisy = dataset.assign({PEAK: (dataset[PEAK] + noise).assign_attrs(units="B")})
    fit = fits(noisy)[0]
    assert fit.surface.residual_sd == pytest.approx(1e5 / math.sqrt(3), rel=0.6)  # mean of 3 seeds
    assert fit.leave_one_out is not None
    assert fit.leave_one_out > fit.surface.residual_sd
    assert fit.leave_step_out(0) is not None
    # Without one of four sizes three are left, enough for y²; without one of three not.
    assert fit.leave_step_out(1) is not None
    assert fits(noisy.isel({"event.size": [0, 1, 3]}))[0].leave_step_out(1) is None


def test_a_search_is_fitted_where_it_found_a_boundary() -> None:
    dataset = study()
    boundary = dataset[PEAK].where(dataset["by"] == "simulate")
    status = np.where(boundary.notnull(), "found", "").astype("<U8")
    status[1, 0, 0, :] = "never"
    status[1, 0, 1, 0] = "above"  # the other seeds found theirs
    about = {
        "units": "B",
        "key": "network.switch.tor.buffer",
        "find": "smallest",
        "bounds": [0, 1e9],
    }
    searched = dataset.assign(
        boundary=boundary.assign_attrs(about), boundary_status=(boundary.dims, status)
    )
    formula, simulation = answers(searched)
    assert (formula.variable, simulation.variable) == (PEAK, "boundary")
    assert simulation.left_out == {"saturated": 1, "never satisfied": 1}
    assert formula.left_out == {"saturated": 1}
    assert [fit.z.size for fit in fits(searched)] == [15, 14]
    [pair] = agreements(searched)
    assert pair.scale.k == pytest.approx(1.5)
    shared = searched.assign(boundary_shared=(boundary / 2).assign_attrs(units="B"))
    [pair] = agreements(shared, "boundary_shared")
    assert pair.scale.k == pytest.approx(0.75)
    assert len(pair.at) == 14


def test_further_axes_have_a_surface_for_each_step() -> None:
    twice = study().assign({PEAK: (2 * study()[PEAK]).assign_attrs(units="B")})
    both = xarray.concat([study(), twice], "links.x").assign_coords({"links.x": ["one", "two"]})
    found = fits(both.transpose("by", "links.x", ...), PEAK)
    assert [(fit.method, fit.held["links.x"]) for fit in found] == list(
        itertools.product(["analyse", "simulate"], ["one", "two"])
    )


def test_a_study_of_one_axis_has_no_surface() -> None:
    with pytest.raises(StudyError, match="two numeric axes"):
        fits(study().isel({"event.rate": [0]}))
    assert study_surface.finding(study().isel({"event.rate": [0]})) is None


def test_a_point_outside_of_the_interval_is_told() -> None:
    dataset = study()
    point = {"event.rate": 12e3, "event.size": 5e6}
    formula, _ = fits(dataset, terms="plane", below=10e6)
    [answer, *others] = study_surface.sentences(dataset, [formula], point, 10e6)
    assert "by extrapolation; the formula itself gives 35 MB there, outside of" in answer
    assert "Only points of at most 10 MB are fitted." in others
    assert any(sentence.startswith("Extrapolation relies on the shape") for sentence in others)


def test_a_surface_that_rests_on_single_points_is_told_without_leaving_them_out() -> None:
    dataset = study()
    dataset[PEAK].loc[{"event.rate": RATES[1:], "event.size": SIZES[1:]}] = np.nan
    dataset[PEAK].loc[{"event.rate": 6e3, "event.size": 5e6}] = 20e6
    fit = fits(dataset, terms="1 + x + y + x*y")[0]  # one point tells x*y
    assert fit.leave_one_out is None
    assert study_surface.finding(dataset.isel({"event.rate": [0, 1]})) is None
    _, [row, _] = study_surface.table(dataset, [fit, fit], [])
    assert row[5] == "–"


# --- Methods -------------------------------------------------------------------------------------


def test_one_factor_between_two_methods() -> None:
    [pair] = agreements(study())
    assert pair.methods == ("analyse", "simulate")
    assert pair.scale.k == pytest.approx(1.5)
    assert pair.scale.residuals == pytest.approx(0.0, abs=1e-6)
    assert len(pair.at) == 15
    assert pair.left_out == {"saturated": 1}
    assert pair.parting == 0
    [_, within, *_] = study_methods.sentences(pair)
    assert within == "All points are within 10 % of that: one factor describes them."


def test_one_factor_through_some_points() -> None:
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


def test_points_that_part_are_told_by_their_load() -> None:
    dataset = study()
    dataset[PEAK].loc[{"by": "simulate", "event.rate": 2e3}] *= 3
    [pair] = agreements(dataset)
    low = [v for v in pair.verdicts if v and v.load is Load.LOW]  # 2 of 20 kHz
    assert len(low) == 4
    assert all(verdict.parts for verdict in low)
    assert pair.load.min() == pytest.approx(0.1)
    sentences = " ".join(study_methods.sentences(pair))
    assert "4 of 15 points are not within 10 % of that: 4 at low load" in sentences


def test_the_load_is_that_of_the_links_where_no_bound_is_known() -> None:
    dataset = study().drop_vars("event_rate_bound_hz")
    assert load(dataset) is None
    down = xarray.full_like(dataset[PEAK], 0.25)
    dataset["link_utilisation.access.down"] = down
    dataset["link_utilisation.uplink.down"] = down.where(dataset["event.rate"] < 10e3, 0.5)
    found = load(dataset)
    assert found is not None
    assert found.values[:, 0].tolist() == [0.25, 0.25, 0.5, 0.5]


# --- What a report shows -------------------------------------------------------------------------


def test_every_finding_is_drawn() -> None:
    found = findings(with_course(study(), gumbel()))
    assert [each.name for each in found] == ["levels", "surface", "methods"]
    for each in found:
        each.figure.draw_without_rendering()
        assert all(len(row) == len(each.head) for row in each.rows)


def test_the_figure_of_levels_has_the_maxima_at_their_plotting_positions() -> None:
    dataset = with_course(study([12e3], [5e6]), gumbel())
    found = levels(dataset, replicas=0)
    [axes] = study_levels.figure(dataset, found, found.points[0]).axes
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    times, values = dots.get_data()
    assert times[-1] == pytest.approx(0.1 * 241)  # the highest of 240
    assert values[-1] == pytest.approx(found.points[0].fit.maxima.max() / 1e6)


def test_the_surface_shows_where_it_is_extrapolated() -> None:
    dataset = study()
    figure = study_surface.figure(dataset, fits(dataset), {"event.rate": 24e3, "event.size": 5e6})
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert any(np.isfinite(line.get_ydata().astype(float)).any() for line in dashed)


# --- The commands --------------------------------------------------------------------------------

STUDY = """
scenario = "small-rack"
methods = ["analyse", "simulate"]
[set]
"run.duration" = "0.1 s"
"run.warmup" = "10 ms"
"network.switch.tor.model" = "infinite"
[grid]
"event.rate" = ["1 kHz", "2 kHz", "4 kHz"]
"event.size" = ["100 kB", "200 kB", "300 kB", "400 kB"]
"""


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that name a study which is computed."""
    folder = tmp_path_factory.mktemp("conclude")
    (folder / "mine.toml").write_text(STUDY)
    made = load_study(folder / "mine.toml")
    with Store.open(folder / "store", create=True) as store:
        run(made, store, InProcess(store))
    return [str(folder / "mine.toml"), "--store", str(folder / "store")]


def test_the_commands_print_one_json_object(computed: list[str]) -> None:
    told = {}
    for name in ("levels", "fit", "compare"):
        few = ["--at", "event.rate=2 kHz"] if name == "levels" else []
        done = CliRunner().invoke(app, ["study", name, *computed, *few, "--json"])
        assert done.exit_code == 0, done.output
        told[name] = json.loads(done.stdout)
        assert (told[name]["schema"], told[name]["study"]) == (1, "mine")
    assert [each["name"] for each in told["levels"]["periods"]] == ["hour", "fill", "day"]
    assert len(told["levels"]["points"]) + len(told["levels"]["left_out"]) == 4
    assert [fit["method"] for fit in told["fit"]["fits"]] == ["analyse", "simulate"]
    [place] = told["fit"]["fits"][0]["predictions"]
    assert place["at"] == {"event.rate": 2000.0, "event.size": 400000.0}  # the scenario's own
    assert len(told["compare"]["pairs"][0]["points"]) == 12


def test_the_commands_tell_people_sentences_and_draw(computed: list[str], tmp_path: Path) -> None:
    for name, words in (
        ("levels", "At 2 kHz × 400 kB"),
        ("fit", "At 2 kHz × 400 kB the surface through the simulation gives"),
        ("compare", "times the value of the formula"),
    ):
        drawn = tmp_path / f"{name}.png"
        few = ["--at", "event.size=400 kB"] if name == "levels" else []
        done = CliRunner().invoke(app, ["study", name, *computed, *few, "--figure", str(drawn)])
        assert done.exit_code == 0, done.output
        assert words in done.stdout
        assert drawn.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["levels", "--period", "fortnight"], '"fortnight" is not a period'),
        (["levels", "--at", "rate=1"], "the axes of this study are event.rate, event.size"),
        (["levels", "--at", "event.rate=1 MB"], '--at event.rate: "1 MB" is not in Hz'),
        (["levels", "--at", "event.rate=3 kHz"], "is not a step of this study"),
        (["levels", "--period", "1 s", "--fill", "x"], '"x" is not a period'),
        (["fit", "--terms", "1 + z"], 'cannot read "z"'),
        (["fit", "--below", "1 Hz"], '--below "1 Hz" is not in B'),
        (["fit", "--below", "1 B"], "0 points are too few"),
        (["fit", "--show", "nonsense"], 'no metric "nonsense"'),
        (["compare", "--show", "event_rate_hz"], "no two methods"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    computed: list[str], words: list[str], said: str
) -> None:
    done = CliRunner().invoke(app, ["study", words[0], *computed, *words[1:]])
    assert done.exit_code == 2
    assert said in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)

"""Published numbers computed from studies: terms, expressions, series, fits, and mistakes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.reproduction.compute import compute, studies
from daqloom.study.reproduction.record import Values, load_record
from support import small_studies
from support.small_studies import GRID

RECORD = """
paper = "atlas-buffers"
where = "fig. 4"
title = "a buffer"
unit = "kB"
published = 1
[ours]
metric = "buffer_peak_bytes.tor"
"""
TABLES = """
[ours.tables]
scenario = "small-rack"
methods = ["analyse", "simulate"]
[ours.tables.set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
[ours.tables.grid]
"event.rate" = ["0.2 kHz", "0.4 kHz"]
"event.size" = ["500 kB", "1 MB"]
[ours.tables.repeat]
seeds = 2
[ours.quick.repeat]
seeds = 1
"""
POINT = 'at = { "event.rate" = "0.4 kHz", "event.size" = "1 MB" }\n'


@pytest.fixture
def computed(tmp_path: Path) -> Callable[..., Values]:
    """Compute a record with these lines in [ours]; studies share a store in a folder."""

    def values(lines: str, tables: str = TABLES, *, quick: bool = False) -> Values:
        path = tmp_path / "mine.toml"
        path.write_text(RECORD + lines + tables)
        datasets = partial(small_studies.computed, folder=tmp_path / "store")
        return compute(path, load_record(path), datasets, quick=quick)

    return values


def test_a_metric_at_a_point_has_its_mean_and_range_over_seeds(computed) -> None:
    found = computed(POINT)
    assert found.seeds == 2
    assert found.low < found.value < found.high
    assert found.value == pytest.approx((found.low + found.high) / 2)


def test_the_quick_form_has_tables_of_its_own(computed) -> None:
    full, quick = computed(POINT), computed(POINT, quick=True)
    assert (quick.seeds, quick.low, quick.high) == (1, None, None)
    assert quick.value in (full.low, full.high)


def test_a_formula_has_no_seeds(computed) -> None:
    found = computed(POINT + 'method = "analyse"\n')
    assert (found.seeds, found.low) == (0, None)


def test_an_expression_is_computed_seed_by_seed(computed) -> None:
    terms = """
[ours.terms.small]
at = { "event.size" = "500 kB" }
[ours.terms.large]
at = { "event.size" = "1 MB" }
"""
    lines = 'value = "1e6 * (large / small)"\nat = { "event.rate" = "0.4 kHz" }\n'
    ratio = computed(lines, terms + TABLES)
    at = 'at = {{ "event.rate" = "0.4 kHz", "event.size" = "{}" }}\n'
    large, small = computed(at.format("1 MB")), computed(at.format("500 kB"))
    ends = {large.low / small.low, large.high / small.high, large.low / small.high}
    ends |= {large.high / small.low}
    assert ratio.low / 1e3 in [pytest.approx(each) for each in ends]
    assert ratio.high / 1e3 in [pytest.approx(each) for each in ends]


def test_a_free_axis_makes_a_series_and_a_function_reduces_it(computed) -> None:
    series = computed('at = { "event.rate" = "0.4 kHz" }\n')
    assert list(series.value) == ["500 kB", "1 MB"]
    assert series.value["1 MB"] == computed(POINT).value
    largest = computed('value = "max(a)"\n', "terms.a = {}\n" + TABLES)
    both = [computed(POINT.replace("0.4", rate)) for rate in ("0.2", "0.4")]
    assert largest.high == max(each.high for each in both)


def test_a_study_by_name_is_narrowed_to_the_points_needed(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        RECORD + 'study = "atlas-sensitivity"\nat = { variant = "as it is" }\n'
        '[ours.quick.set]\n"run.duration" = "60 ms"\n'
    )
    [(_, _, full)] = studies(path, load_record(path), quick=False)
    [(_, _, quick)] = studies(path, load_record(path), quick=True)
    assert (full.points, full.methods, full.seeds) == (1, ("simulate",), (1, 2, 3))
    assert (quick.points, quick.seeds) == (1, (1,))
    assert (full.base.run.duration, quick.base.run.duration) == (2.5, 0.06)


def test_a_factor_and_a_fit_have_the_interval_of_their_statistics(computed) -> None:
    [line] = [each for each in GRID.splitlines() if "kHz" in each and "event.rate" in each]
    tables = TABLES.replace('"event.rate" = ["0.2 kHz", "0.4 kHz"]', line)
    tables = tables.replace('"1 MB"]', '"1 MB", "1.5 MB"]')
    factor = computed("factor = {}\n", tables)
    assert factor.low < factor.value < factor.high
    place = '{ "event.rate" = "0.4 kHz", "event.size" = "1 MB" }'
    fit = computed(f'fit = {{ at = {place}, terms = "plane" }}\n', tables)
    assert fit.low < fit.value < fit.high
    at = computed(POINT, tables)
    assert fit.low < at.value < fit.high
    quality = f'fit = {{ at = {place}, terms = "plane", result = "r_squared" }}\n'
    assert 0 < 1e3 * computed(quality, tables).value <= 1


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            'at = { "event.rate" = "0.3 kHz" }\n',
            'at: event.rate = "300 Hz" is no step of mine',
        ),
        (
            'at = { "event.rat" = "0.4 kHz" }\n',
            "at: event.rat is no axis of mine; its axes are",
        ),
        ('at = { "event.rate" = "0.4 kB" }\n', 'at: event.rate = "0.4 kB" is not in Hz'),
        ('method = "measure"\n', "mine has no results of measure; add it to methods"),
        ('study = "atlas-max"\n', 'there is no study "atlas-max"; did you mean "atlas-max-rate"'),
        ("value = '1 / 0'\n", "ours.value has no value: division by zero"),
        ("", "event.rate and event.size are free; give all but one in at"),
        (POINT.replace("at =", 'fit.below = "5 s"\nfit.at ='), 'below = "5 s" is not in B'),
    ],
)
def test_a_mistake_is_a_sentence_on_the_file(computed, lines: str, sentence: str) -> None:
    with pytest.raises(StudyError) as refused:
        computed(lines)
    assert "mine.toml: ours" in str(refused.value)
    assert sentence in "\n".join(refused.value.mistakes)


def test_an_unknown_metric_is_refused_with_a_similar_one(computed) -> None:
    lines = 'value = "peak"\n' + POINT
    term = "[ours.terms.peak]\nmetric = 'buffer_peak_bytes.to'\n"
    with pytest.raises(StudyError) as refused:
        computed(lines, term + TABLES)
    assert "mine.toml: ours.terms.peak: mine has no buffer_peak_bytes.to; did you" in str(
        refused.value
    )

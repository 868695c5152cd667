"""Records of published numbers: validated, with all mistakes at once; found by name."""

from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.reproduction.record import Record, load_record, records, select
from daqloom.study.reproduction.table import outcome

OURS = '[ours]\nstudy = "atlas-max-rate"\nmetric = "boundary"\n'
METRIC = 'metric = "boundary"\n'
GOOD = (
    """
paper = "atlas-buffers"
where = "fig. 3"
title = "a rate"
unit = "kHz"
published = 14.2
"""
    + OURS
)


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def mistakes(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(StudyError) as refused:
        load_record(written(folder, text))
    return refused.value.mistakes


def test_a_record_has_all_that_its_file_gives(tmp_path: Path) -> None:
    record = load_record(written(tmp_path, GOOD))
    assert (record.published, record.scale, record.relation) == (14.2, 1e3, "equal")
    assert record.ours is not None
    [term] = record.ours.named_terms.values()
    assert (term.study, term.metric, term.method) == ("atlas-max-rate", "boundary", "simulate")


def test_all_mistakes_of_a_file_are_listed(tmp_path: Path) -> None:
    text = (
        GOOD.replace("atlas-buffers", "atlas")
        .replace("14.2", '"14.2 kHz"')
        .replace("metric", "metrik")
    )
    found = mistakes(tmp_path, text)
    assert len(found) == 3
    assert any("paper" in each and 'did you mean "atlas-buffers"' in each for each in found)
    assert any('unknown key "ours.metrik"; did you mean "ours.metric"' in each for each in found)
    assert all(str(tmp_path) in each for each in found)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"kHz"', '"furlong"', 'unit = "furlong" is not known; expected a unit such as MB'),
        (
            OURS,
            "",
            "ours or elsewhere is needed",
        ),
        (
            "published",
            'elsewhere = "no card"\npublished',
            "ours or elsewhere is needed, and not both",
        ),
        (METRIC, "", "metric is missing"),
        (METRIC, 'value = "a"\n', 'value = "a" has no term a'),
        (METRIC, "terms.a.metric = 'x'\n", "terms has no expression"),
        (
            METRIC,
            "value = '1'\nterms.a.metric = 'x'\n",
            "terms.a is not used by value",
        ),
        (METRIC, "value = 'a b'\n", 'value = "a b" is no expression'),
        ('"kHz"', '"kHz"\nerror = -1', "error = -1 is too small"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in GOOD
    assert sentence in "\n".join(mistakes(tmp_path, GOOD.replace(old, new)))


@pytest.mark.parametrize(
    ("unit", "scale"),
    [
        *(("MB", 1e6), ("GiB", 2**30), ("Tb/s", 1e12), ("ms", 1e-3), ("h", 3600), ("Hz", 1)),
        *(("%", 0.01), ("", 1), ("packets", 1)),
    ],
)
def test_a_unit_has_its_scale(unit: str, scale: float) -> None:
    record = Record(paper="atlas-buffers", where="", title="", unit=unit, elsewhere="no card")
    assert record.scale == pytest.approx(scale)


def test_terms_have_the_keys_of_their_table_as_defaults(tmp_path: Path) -> None:
    text = (
        GOOD.replace(METRIC, "")
        + """
at = { "event.size" = "5 MB" }
metric = "event_rate_hz"
value = "a / b"
[ours.terms.a]
at = { variant = "deep" }
[ours.terms.b]
method = "analyse"
"""
    )
    ours = load_record(written(tmp_path, text)).ours
    assert ours is not None
    a, b = ours.named_terms["a"], ours.named_terms["b"]
    assert a.at == {"event.size": "5 MB", "variant": "deep"}
    assert (a.method, b.method, b.at) == ("simulate", "analyse", {"event.size": "5 MB"})
    assert {a.study, b.study} == {"atlas-max-rate"}
    assert {a.metric, b.metric} == {"event_rate_hz"}


def test_names_select_records_by_words_in_their_names() -> None:
    assert select(["atlas-fig3-deep"]) == ["atlas-fig3-deep"]
    assert select(["fig4"]) == ["atlas-fig4", "poster-fig4"]
    of_figure = select(["atlas-fig3", "atlas-fig3-deep"])
    assert len(of_figure) == len(set(of_figure)) > 3
    assert all(each.startswith("atlas-fig3-") for each in of_figure)
    with pytest.raises(StudyError, match='no published number "atlas-fig33"; did you mean "atlas-'):
        select(["atlas-fig33"])


def test_a_number_that_does_not_come_out_has_a_reason() -> None:
    for name, record in records().items():
        if outcome(record, record.stored.full) == "no":
            assert record.reason, name

"""Stored values at the end of a record's file."""

from pathlib import Path

from daqloom.study.reproduction.record import Values, load_record
from daqloom.study.reproduction.update import write

TEXT = """# a comment
paper = "atlas-buffers"
where = "fig. 4"
title = "a buffer"
unit = "MB"

[ours]
study = "atlas-min-shared-buffer"
metric = "boundary"
"""


def test_values_of_both_forms_are_read_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    series = Values(
        value={"1 MB": 1 / 3, "2 MB": -0.1}, low={"1 MB": 0.3}, high={"1 MB": 0.4}, seeds=3
    )
    scalar = Values(value=2.0**0.5, seeds=1)
    write(path, series, quick=False)
    write(path, scalar, quick=True)
    assert load_record(path).stored.full == series
    assert load_record(path).stored.quick == scalar
    assert path.read_text().startswith(TEXT)


def test_later_values_replace_those_of_their_form_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    for value in (1.0, 2.0):
        for quick in (True, False):
            write(path, Values(value=value + quick), quick=quick)
    stored = load_record(path).stored
    assert (stored.full, stored.quick) == (Values(value=2.0), Values(value=3.0))
    text = path.read_text()
    write(path, Values(value=2.0), quick=False)
    assert path.read_text() == text

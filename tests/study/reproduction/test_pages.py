"""Tables of published numbers on pages: those of the records, and every record on a page."""

import re
from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.reproduction.pages import names, rewritten
from daqloom.study.reproduction.record import records, shipped_records
from support.repository import ROOT

PAGES = sorted((ROOT / "docs" / "explanation").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_tables_of_a_page_are_those_of_the_records(page: Path) -> None:
    text = page.read_text()
    assert rewritten(text) == text, f"run: make docs (or {page.stem} has an old table)"


def test_every_record_is_in_the_table_of_the_page_that_discusses_it() -> None:
    shown = {page.name: set(names(page.read_text())) for page in PAGES}
    for name, record in records().items():
        assert name in shown[record.section.partition("#")[0]], name


def test_a_record_names_a_heading_of_its_page() -> None:
    for name, record in records().items():
        page, _, heading = record.section.partition("#")
        text = (ROOT / "docs" / "explanation" / page).read_text()
        headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        assert heading in anchors, f"{name}: {record.section}"


def test_text_around_a_table_is_kept() -> None:
    around = "Above.\n\n<!-- reproduce: {} -->\nold\n<!-- end of reproduce -->\n\nBelow.\n"
    text = rewritten(around.format("atlas-campaign"))
    assert text.startswith("Above.\n\n<!-- reproduce: atlas-campaign -->\n\n| number | published |")
    assert text.endswith("\n<!-- end of reproduce -->\n\nBelow.\n")
    assert "old" not in text
    assert "(`atlas-campaign`) |" in text
    assert rewritten(text) == text
    with pytest.raises(StudyError, match='no published number "nonsense"'):
        rewritten(around.format("nonsense"))


def test_a_series_without_published_values_has_one_row() -> None:
    text = rewritten("<!-- reproduce: flit-outlook-daqpipe -->\n<!-- end of reproduce -->")
    [row] = re.findall(r"^\| outlook: .*", text, re.MULTILINE)
    assert re.search(r"\| – \| at 72: [\d.]+ Gb/s .*; at 504: [\d.]+ Gb/s .*\| – \| – \|", row)


def test_there_is_a_record_of_each_figure_of_the_atlas_paper() -> None:
    for figure in ("atlas-fig3", "atlas-fig4", "atlas-fig5", "atlas-fig6"):
        assert any(name.startswith(figure) for name in shipped_records())

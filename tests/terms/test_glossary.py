"""The glossary: its page, and the names by which its terms are found."""

import pytest

from daqloom.terms.glossary import TERMS, matching, reference
from support.repository import ROOT


def test_the_page_is_generated_from_the_terms() -> None:
    page = ROOT / "docs" / "reference" / "glossary.md"
    assert page.read_text() == reference(), "run: python -m daqloom.terms.glossary > docs/…"


def test_terms_are_unique_and_have_meanings() -> None:
    titles = [term.title for term in TERMS]
    assert len(set(titles)) == len(titles) > 80
    assert all(term.meaning.endswith(".") for term in TERMS)


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("readout unit", ["readout unit (RU)"]),
        ("RU", ["readout unit (RU)"]),
        ("tor", ["top-of-rack switch (ToR)"]),
        ("Linear_Shift", ["linear shift"]),
        ("MEPs", ["MEP"]),
        ("credit", ["credit (of DAQPIPE)", "credit (of a link)"]),
        ("drifting", ["stationary, drifting"]),
        ("events", ["event"]),
        ("of a link", []),
        ("nonsense", []),
    ],
)
def test_a_term_is_found_by_its_names(name: str, titles: list[str]) -> None:
    assert [term.title for term in matching(name)] == titles

"""Systems and results in a notebook: tables that say what they hold, and no markup."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest

import daqloom
from daqloom.system import System
from support.small_fabrics import small as small_fabric

QUICK = {"run.duration": "60 ms", "run.warmup": "10 ms"}


class Cells(HTMLParser):
    """Texts of the cells of all tables, and whether tags are closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_a_result_is_a_table_in_a_notebook() -> None:
    result = daqloom.load("small-rack", QUICK).simulate(seed=3)
    html = result._repr_html_()
    cells = Cells(html).cells
    assert cells[cells.index("packets_dropped") + 1] == "0"
    assert "seed 3" in html
    analysed = Cells(daqloom.load("atlas-lab").analyse()._repr_html_()).cells
    assert analysed[analysed.index("exact") + 2] == "yes"


@pytest.mark.parametrize("system", [daqloom.load("small-rack", QUICK), System(small_fabric())])
def test_a_scenario_shows_its_given_keys_and_folds_the_defaults(system: Any) -> None:
    html = system._repr_html_()
    cells = Cells(html).cells
    given = json.loads(system.scenario.model_dump_json(exclude_unset=True))
    assert "[run]" in html.partition("<details>")[2]
    for table, keys in given.items():
        if isinstance(keys, dict):
            for key, value in keys.items():
                if not isinstance(value, dict):
                    assert cells[cells.index(f"{table}.{key}") + 1] == str(value)


def test_texts_of_a_scenario_are_no_markup() -> None:
    title = "<script>alert(1)</script> & more"
    html = daqloom.load("small-rack", {"title": title})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html

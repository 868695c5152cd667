"""daqloom from Python: notebooks, sweeps without a file, datasets that say what they hold."""

from __future__ import annotations

import ast
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import daqloom
from daqloom.cli.main import app
from daqloom.metrics import described
from daqloom.study import StudyError
from daqloom.study.store import Store
from daqloom.system import System
from support.repository import ROOT
from support.small_fabrics import small as small_fabric

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
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
def test_a_scenario_shows_what_it_says_and_folds_the_rest(system: Any) -> None:
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


AXES = {"event.rate": ["1 kHz", "2 kHz"], "event.size": ["200 kB", "400 kB"]}


def test_a_sweep_holds_what_each_point_gives() -> None:
    rack = daqloom.load("small-rack", QUICK)
    found = daqloom.sweep(rack, AXES, method=["analyse", "simulate"], seeds=[1, 7])
    assert dict(found.sizes) == {"by": 2, "event.rate": 2, "event.size": 2, "seed": 2}
    point = {"event.rate": 2e3, "event.size": 200e3}
    there = rack.with_overrides({"event.rate": "2 kHz", "event.size": "200 kB"})
    for seed in (1, 7):
        simulated = found.sel({"by": "simulate", "seed": seed, **point})
        for name in ("event_rate_hz", "buffer_peak_bytes.tor", "collection_latency_s.p99"):
            assert simulated[name] == there.simulate(seed=seed).metric(name)
    analysed = found.sel({"by": "analyse", "seed": 1, **point})
    assert analysed["buffer_peak_bytes.tor"] == there.analyse().metric("buffer_peak_bytes.tor")


def test_a_range_is_an_axis_and_one_method_is_the_simulation() -> None:
    axis = {"event.rate": {"from": "1 kHz", "to": "3 kHz", "step": "1 kHz"}}
    found = daqloom.sweep(daqloom.load("small-rack", QUICK), axis)
    assert list(found["event.rate"].values) == [1e3, 2e3, 3e3]
    assert list(found["by"].values) == ["simulate"]


def test_a_store_keeps_what_was_computed_and_workers_share_it(tmp_path: Path) -> None:
    rack, shares = daqloom.load("small-rack", QUICK), []
    first = daqloom.sweep(rack, AXES, workers=2, store=tmp_path / "s", progress=shares.append)
    assert shares[-1] == 1.0
    with Store.open(tmp_path / "s", create=False) as store:
        kept = len(store)
    assert kept == 4
    again = daqloom.sweep(rack, AXES, store=tmp_path / "s")
    with Store.open(tmp_path / "s", create=False) as store:
        assert len(store) == kept
    assert again.identical(first)


def test_every_variable_says_what_it_is_and_in_which_unit() -> None:
    found = daqloom.sweep(daqloom.load("small-rack", QUICK), AXES, course=True)
    for name in [*found.data_vars, *found.coords]:
        assert found[name].attrs["long_name"]
        assert isinstance(found[name].attrs["units"], str)
        if metric := described(str(name)):
            assert found[name].attrs["units"] == metric.unit
    assert found["event.rate"].attrs == {"long_name": "event rate", "units": "Hz"}


@pytest.mark.parametrize(
    ("axes", "more", "sentence"),
    [
        ({"event.sise": ["1 MB"]}, {}, "event.sise"),
        ({"event.size": ["1 kHz"]}, {}, "is not in B"),
        ({"event.size": []}, {}, "event.size"),
        ({"run.seed": [1, 2]}, {}, "run.seed is set by"),
        (AXES, {"method": "guess"}, "methods"),
        (AXES, {"seeds": 0}, "repeat.seeds"),
    ],
)
def test_a_sweep_without_sense_is_refused_in_a_sentence(axes, more, sentence) -> None:
    with pytest.raises(StudyError, match=sentence):
        daqloom.sweep(daqloom.load("small-rack", QUICK), axes, **more)


def test_what_cannot_be_computed_is_missing_and_told() -> None:
    rack = daqloom.load("small-rack", QUICK)
    sizes = ["200 kB", "1 B", "400 kB"]  # 1 B is less than a byte for each of four sources
    with pytest.warns(UserWarning, match=r"1 of 3 answers are missing; the first: simulate, .*1 B"):
        found = daqloom.sweep(rack, {"event.size": sizes})
    assert list(np.isnan(found["event_rate_hz"].values.ravel())) == [False, True, False]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_example_notebook_runs(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell by cell, as a kernel does it; what a cell ends with can be shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(notebook.read_text())["cells"]
    namespace: dict[str, Any] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, notebook.name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), namespace)
            shown.append(getattr(value, "_repr_html_", value.__repr__)())
    assert len(shown) > 4
    assert all(shown)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


def test_a_system_shows_what_the_command_line_shows() -> None:
    shown = CliRunner().invoke(app, ["show", "atlas-lab", "--set", "event.size=2 MB"])
    assert daqloom.load("atlas-lab", ["event.size=2 MB"]).show() == shown.stdout


def test_a_rack_is_compared_on_the_same_events_and_a_fabric_by_its_methods() -> None:
    rack = daqloom.load("small-rack").on_same_events(0.05, seed=1)
    assert rack.formula_peak > rack.regular_peak > 0
    assert rack.simulated.seed == 1
    found = System(small_fabric()).beside(["analyse", "simulate"])
    assert [result.method for result in found.results] == ["analyse", "simulate"]
    assert found.results[1].metrics == System(small_fabric()).simulate().metrics

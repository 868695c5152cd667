"""The page for operators has every state, counter and cause of refusal."""

import os
import re
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

import pytest

from daqloom import _engine
from daqloom.control.counters.exporter import SLOTS
from daqloom.control.protocol.states import Phase, Refusal, ReportRefusal, Standing, State
from daqloom.control.reference import written_into
from daqloom.deployment.scenarios import load
from daqloom.measure.configure import live_config
from daqloom.scenario import Scenario
from support.measure.live_nodes import TOKEN, configure
from support.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "operations.md"


def counted(files: Path) -> set[str]:
    """Return the counters of units, with each kind of consumer."""
    names: set[str] = set()
    cards = ("event.rate=1 kHz", "readout.card.buffer=1 MB")
    for sink, more in (("check", ()), ("file", (f"measure.sink_files={files}",)), ("user", cards)):
        scenario = load("laptop", [f"measure.sink={sink}", *more])
        assert isinstance(scenario, Scenario)
        order = configure(run=f"operations-{os.getpid()}")
        node = _engine.LiveNode(live_config(scenario, order, TOKEN))
        try:
            names |= node.counters().by_name.keys()
        finally:
            node.shut()
    return names


@pytest.mark.process
def test_every_counter_is_described_and_nothing_else(tmp_path: Path) -> None:
    names = counted(tmp_path)
    known = [each.name for each in _engine.known_counters()]
    assert [name for name in names if not any(fnmatch(name, each) for each in known)] == []
    of_attached = {f"{each}.*" for each in SLOTS}
    found = {each for each in known if any(fnmatch(name, each) for name in names)}
    assert set(known) - found <= of_attached | {"disk_free_bytes"}  # known once a file is open


def test_the_page_has_the_counters_states_transitions_and_refusals() -> None:
    page = PAGE.read_text()
    assert written_into(page) == page, "make docs"
    missing = [
        each for kind in (State, Standing, Phase) for each in kind if f"`{each}`" not in page
    ]
    assert missing == []
    rows = {
        tuple(cell.strip(" `") for cell in line.split("|")[1:4])
        for line in page.splitlines()
        if line.startswith("| `")
    }
    assert {(each.state, each.step, each.next) for each in _engine.transitions()} <= rows
    assert [why for why in (*Refusal, *ReportRefusal) if f"| `{why}` |" not in page] == []


def test_the_tests_that_the_explanation_names_exist() -> None:
    root = PAGE.parent.parent.parent
    text = (root / "docs" / "explanation" / "live-event-builder.md").read_text()
    named = re.findall(
        r"`([A-Za-z]+)\.([A-Za-z]+)`", text.partition("## Guarantees and their tests")[2]
    )
    assert len(named) >= 8
    sources = "\n".join(path.read_text() for path in (root / "engine").rglob("*_test.?pp"))
    for suite, test in named:
        assert re.search(rf"\({suite}, {test}\)", sources), f"{suite}.{test}"

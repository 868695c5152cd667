"""The command that lists and computes published numbers."""

import json
from pathlib import Path

import pytest

from daqloom.cli.console.terminal import BAD_INPUT
from daqloom.study.reproduction.record import records
from support.command import commands, output

reproduce = commands("reproduce")


def test_the_list_has_every_number_with_its_outcome() -> None:
    lines = reproduce.printed().splitlines()
    for name, record in records().items():
        [first, *_] = [line for line in lines if line.split()[:1] == [name]]
        assert record.where in first
    assert any("fig. 4" in line for line in lines)


def test_the_list_is_for_programs_too() -> None:
    found = json.loads(reproduce.printed("--json", silent=True))
    assert [each["name"] for each in found["numbers"]] == list(records())
    by_name = {each["name"]: each for each in found["numbers"]}
    assert by_name["atlas-campaign"]["outcome"] == "input"
    assert by_name["switch-real-throughput"]["outcome"] == "not computed"


def test_numbers_are_computed_by_their_first_words_with_a_figure(tmp_path: Path) -> None:
    figure = tmp_path / "memory.png"
    store = tmp_path / "store"
    shown = reproduce.printed("switch-memory-all", "--store", store, "--figure", figure)
    assert "switch-memory-all-to-all: memory of 144 rings" in shown
    assert "1.12 GiB" in shown
    assert "1.125 GiB" in shown
    assert "software-switch.md#" in shown
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_quick_form_is_computed_once_and_shown_beside_the_recorded_value(tmp_path: Path) -> None:
    words = ("atlas-simulation-over-formula", "--quick", "--store", tmp_path / "store")
    options = ("--workers", 1, "-q")
    shown = reproduce.printed(*words, *options, silent=True)
    assert "quick form" in shown
    assert "recorded" in shown
    [found] = json.loads(reproduce.printed(*words, *options, "--json", silent=True))["numbers"]
    stored = records()["atlas-simulation-over-formula"].stored.quick
    assert stored is not None
    assert found["values"][0]["value"] == pytest.approx(stored.value, rel=1e-9)


def test_a_number_without_a_command_states_why() -> None:
    shown = output("reproduce", "switch-power")
    assert "switch-power: needs a processor with energy counters" in shown


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    assert 'did you mean "atlas-formula"?' in reproduce.refused("atlas-formul")
    assert "need a NAME" in reproduce.refused("--quick")
    assert "must end in .png" in reproduce.refused("atlas-k", "--figure", tmp_path / "k.txt")
    assert BAD_INPUT == 2

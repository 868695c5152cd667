"""Shipped files with damage: each is still a system or is refused in one sentence."""

import random
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load
from daqloom.scenario import ScenarioError, known_keys, presets, to_toml
from daqloom.scenario.schema.models import Scenario
from daqloom.study import StudyError
from daqloom.study.file.load import load_study, shipped_studies

MUTANTS = pytest.mark.parametrize("number", [15, pytest.param(200, marks=pytest.mark.soak)])
"""How many of each file."""
LONGEST_SENTENCE = 2000

VALUES = [
    '"2,5 MB"', '"12,5 kHz"', "0x" + "f" * 4000, "-0x" + "f" * 4000, "9" * 5000, "1e999", "-inf",
    "nan", "9223372036854775807", "-1", "0", "1e-400", '""', '"\\u0000"', '"' + "x" * 5000 + '"',
    "[]", "{}", "[[]]", "[1, 1e999]", "[0x" + "f" * 4000 + "]", "true", "1979-05-27", "07:32:00",
    "[" * 600 + "]" * 600, "{a." + "a." * 3000 + "a = 1}",
    '"/dev/zero"', '"."', '"1 Gb/s"', '"0 s"',
    '"1e300 s"', '"٢ MB"', '"5"', "'''\n'''", '"equal"', "[1, 2", "=", "",
]  # fmt: skip
DAMAGE = ["\x00", "\x7f", "\x1b[2J", "é", '"', "'", "=", "[", "]]", "#", "\n", ".", "\\", "\ud800"]


def mutants(text: str, seed: str, number: int) -> list[bytes]:
    """`text` with one to three of: a value replaced, lines swapped or dropped, bytes changed."""
    draw = random.Random(seed)
    return [_mutant(draw, text) for _ in range(number)]


def _mutant(draw: random.Random, text: str) -> bytes:
    lines = text.splitlines()
    for _ in range(draw.randint(1, 3)):
        here, there = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.choice(
            ["value", "value", "value", "swap", "drop", "repeat", "insert", "header"]
        )
        if kind == "value" and "=" in lines[here]:
            lines[here] = f"{lines[here].split('=')[0]}= {draw.choice(VALUES)}"
        elif kind == "swap":
            lines[here], lines[there] = lines[there], lines[here]
        elif kind == "drop" and len(lines) > 1:
            del lines[here]
        elif kind == "repeat":
            lines.insert(there, lines[here])
        elif kind == "header":
            lines.insert(here, "[" + ".".join("a" * draw.choice([1, 17, 20_000])) + "]")
        else:
            at = draw.randint(0, len(lines[here]))
            lines[here] = lines[here][:at] + draw.choice(DAMAGE) + lines[here][at:]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def check_sentence(error: Exception) -> None:
    sentence = str(error)
    assert sentence.isprintable()
    assert len(sentence) < LONGEST_SENTENCE


@MUTANTS
@pytest.mark.parametrize("name", presets())
def test_a_damaged_scenario_is_a_scenario_or_a_sentence(tmp_path, name, number) -> None:
    file = tmp_path / "mutant.toml"
    refused = 0
    for content in mutants(presets()[name].read_text(), name, number):
        file.write_bytes(content)
        try:
            system = load(file)
        except ScenarioError as error:
            refused += 1
            check_sentence(error)
        else:
            assert system.hash()
            assert to_toml(system)
    assert refused > 0


@MUTANTS
@pytest.mark.parametrize("name", shipped_studies())
def test_a_damaged_study_is_a_study_or_a_sentence(tmp_path: Path, name: str, number: int) -> None:
    file = tmp_path / "mutant.toml"
    for content in mutants(shipped_studies()[name].read_text(), name, number):
        file.write_bytes(content)
        try:
            load_study(file)
        except StudyError as error:
            check_sentence(error)


@pytest.mark.parametrize("number", [2, pytest.param(len(VALUES), marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["small-rack", "lhcb-10-percent"])
def test_any_key_set_to_a_hostile_value_is_a_scenario_or_a_sentence(name: str, number: int) -> None:
    """Each key to some values in one scenario, and to others in the other."""
    draw = random.Random(name)
    for key in known_keys(Scenario):
        for value in draw.sample(VALUES, number):
            try:
                assert load(name, [f"{key}={value}"]).hash()
            except ScenarioError as error:
                check_sentence(error)

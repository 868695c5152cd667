"""Hostile study files: each is refused in one sentence, soon, and without much memory."""

import json
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daqloom.study import StudyError
from daqloom.study.file.load import load_study

LONGEST_SENTENCE = 600
MOST_BYTES = 50_000_000

HEAD = 'scenario = "small-rack"\n'
GRID = HEAD + '[grid]\n"builders.units" = '
THOUSAND = '{{ from = "1 {unit}", to = "2 {unit}", count = 1000 }}\n'
SEARCH = """
[search]
key = "builders.units"
find = "smallest"
where = "packets_dropped == 0"
"""


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def refused(path: Path, text: str, *, quick: bool = False) -> str:
    path.write_text(text)
    with little_memory(), pytest.raises(StudyError) as caught:
        load_study(path, quick=quick)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert len(sentence) < LONGEST_SENTENCE
    return sentence


HOSTILE = [
    (GRID + "{ from = 1, to = inf, step = 1 }", "up to 1e+15, found inf"),
    (GRID + "{ from = nan, to = 2, step = 1 }", "found nan"),
    (GRID + "{ from = 1, to = 2, step = nan }", "found nan"),
    (GRID + "{ from = 1, to = 1e15, step = 1 }", "at most 100000 are allowed"),
    (GRID + "{ from = 1, to = 2, count = 1_000_000_000_000 }", "expected 2 to 100000"),
    (GRID + "1" + "0" * 5000, "more than 64 bits"),
    (GRID + "0x" + "f" * 4000, "grid.builders.units a whole number of more than 64 bits"),
    (GRID + "[1" + "0" * 400 + "]", "builders.units a whole number of more than 64 bits"),
    (GRID + "[" * 5000 + "]" * 5000, "nested too deeply"),
    (GRID + "{a=" * 2000 + "1" + "}" * 2000, "nested too deeply"),
    (HEAD + "[grid]\n" + ".".join("a" * 20_000) + " = 1", "dotted key of more than 16 parts"),
    (HEAD + "[" + ".".join("a" * 100_000) + "]", "has a dotted key of more than 16 parts"),
    (HEAD + '"a" . ' * 17 + "a = 1", "has a dotted key of more than 16 parts"),
    (HEAD + '[grid]\n"event.rate" = ["' + "9" * 100_000 + ' kHz"]', "event.rate"),
    (HEAD + '[grid]\n"' + "x" * 100_000 + '" = [1]', "unknown key"),
    (
        HEAD
        + "[grid]\n"
        + '"event.rate" = '
        + THOUSAND.format(unit="kHz")
        + '"event.size" = '
        + THOUSAND.format(unit="MB")
        + '"network.links.access.rate" = '
        + THOUSAND.format(unit="Gb/s"),
        "1000 × 1000 × 1000 points",
    ),
    (HEAD + "[repeat]\nseeds = 1_000_000_000_000", "repeat.seeds"),
    (HEAD + "[repeat]\nseeds = [99999999999999999999]", "repeat.seeds"),
    (HEAD + SEARCH + "bounds = [1, inf]\ntolerance = 1", "search.bounds"),
    (HEAD + SEARCH + "bounds = [1, 9]\ntolerance = nan", "search.tolerance"),
    (HEAD + SEARCH + "bounds = [1, 1e308]\ntolerance = 1e-308", "search.tolerance"),
    (HEAD + SEARCH + "bounds = [0, 9]\ntolerance = 1\nspacing = 'log'", "log spacing"),
]


@pytest.mark.parametrize(("text", "says"), HOSTILE, ids=[says for _, says in HOSTILE])
def test_a_hostile_study_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path / "s.toml", text)


def test_files_nested_without_end_large_or_no_regular_ones_are_refused(tmp_path: Path) -> None:
    text = HEAD + "quick.grid = " + "{a=" * 900 + "1" + "}" * 900
    assert "nested too deeply" in refused(tmp_path / "s.toml", text, quick=True)
    assert "larger than" in refused(tmp_path / "s.toml", HEAD + "#" * (1 << 20))
    os.mkfifo(tmp_path / "fifo.toml")
    with pytest.raises(StudyError, match="not a regular file"):
        load_study(tmp_path / "fifo.toml")


def toml(value: Any) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


TEXTS = st.text(st.characters(codec="ascii", exclude_characters="\x7f"), max_size=20)
WORDS = st.sampled_from(
    ["1 kHz", "2 MB", "0 B", "-1 kHz", "1e300 s", "inf", "nan", "log", "linear", "smallest",
     "packets_dropped == 0", "event.rate", "network.switch.tor.buffer", "analyse", "small-rack", ""]
)  # fmt: skip
SCALARS = WORDS | TEXTS | st.integers() | st.floats() | st.booleans()
KEYS = st.sampled_from(
    ["event.rate", "event.size", "event", "builders.units", "run.duration",
     "network.switch.tor.model",
     "from", "to", "step", "count", "spacing", "key", "find", "where", "bounds", "tolerance",
     "votes", "seeds", "metric", "longest", "set", "grid"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | TEXTS, inner, max_size=5),
    max_leaves=12,
)
TABLES = st.sampled_from(
    ["title", "methods", "set", "grid", "zip", "variants", "search", "equilibrium", "repeat",
     "quick", "show"]
)  # fmt: skip


@given(tables=st.dictionaries(TABLES, VALUES, max_size=4), quick=st.booleans())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_tables_hold_is_a_study_or_a_sentence(
    tmp_path: Path, tables: dict[str, Any], quick: bool
) -> None:
    path = tmp_path / "s.toml"
    lines = [f"{name} = {toml(value)}" for name, value in tables.items()]
    path.write_text("\n".join([HEAD, *lines]), encoding="utf-8")
    sentence = None
    try:
        load_study(path, quick=quick)
    except StudyError as error:
        sentence = str(error)
    if sentence is not None:
        assert sentence.startswith(str(path))
        assert "\n" not in sentence
        assert len(sentence) < LONGEST_SENTENCE

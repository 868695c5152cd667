"""Filling schemes: run lengths, and the files of the accelerator's own tool."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load
from daqloom.scenario.filling import MOST_CROSSINGS, OFFSETS, SLOTS, pattern_of
from daqloom.scenario.schema.event import NOMINAL_FILLING


def test_the_default_filling_is_the_nominal_one_and_others_stand_in_files(tmp_path: Path) -> None:
    # LHC Design Report: 39 trains of 72 bunches on the 3564 crossings of a turn.
    pattern = pattern_of(NOMINAL_FILLING, tmp_path)
    assert len(pattern) == 3564
    assert pattern.count(1) == 39 * 72
    (tmp_path / "fill.txt").write_text("# two trains\n2(3b\n1e)\n")
    assert list(pattern_of("fill.txt", tmp_path)) == [1, 1, 1, 0] * 2
    (tmp_path / "mini.json").write_text('{"beam1":[1,1,0,0,1,1,1,0],"beam2":[1,1,0,0,1,1,1,0]}')
    assert list(pattern_of("mini.json", tmp_path)) == [1, 1, 0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("scheme", "pattern"),
    [
        ("1b", [1]),
        ("2b3e", [1, 1, 0, 0, 0]),
        ("2e 1b", [0, 0, 1]),
        ("2(1b 1e)", [1, 0, 1, 0]),
        ("2(1b 2(1e)) 1b", [1, 0, 0, 1, 0, 0, 1]),
        ("(1b)", [1]),
        ("0(5e) 1b", [1]),
    ],
)
def test_run_lengths_and_groups_expand(tmp_path: Path, scheme: str, pattern: list[int]) -> None:
    assert list(pattern_of(scheme, tmp_path)) == pattern


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("72", "where a run length"),
        ("b", "where a run length"),
        ("3(72b", "never closes"),
        ("72b)", "not open"),
        ("8e", "fills no bunch"),
        ("()", "fills no bunch"),
        ("9999999b", "longer than"),
        ("9999(9999(9999b))", "longer than"),
        ("(" * 20 + "1b" + ")" * 20, "nests brackets"),
    ],
)
def test_a_filling_that_is_none_is_refused(tmp_path: Path, scheme: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        pattern_of(scheme, tmp_path)


def write(folder: Path, one: list[int], two: list[int], kind: str) -> str:
    """Both beams, each by its filled slots, as the accelerator's tool writes them."""
    path = folder / f"scheme.{kind}"
    if kind == "json":
        beams = {f"beam{n}": [int(s in b) for s in range(SLOTS)] for n, b in ((1, one), (2, two))}
        path.write_text(json.dumps({"name": "mini"} | beams))
    else:
        buckets = [",".join(str(10 * slot + 1) for slot in beam) for beam in (one, two)]
        lines = [f"B{beam} filled buckets,{each}" for beam, each in enumerate(buckets, 1)]
        lines.insert(0, "Scheme name,mini")
        path.write_text("\n".join(lines) + "\n")
    return path.name


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("point", ["", *OFFSETS])
def test_slots_meet_by_the_collision_point(tmp_path: Path, kind: str, point: str) -> None:
    """At IP2 a slot of beam 1 meets the slot of beam 2 that is 891 further on, at IP8 2670."""
    one = [0, 1, 10, 1000]
    two = [1, 10, 891, 1000 + 2670 - SLOTS, 2671]
    name = write(tmp_path, one, two, kind)
    pattern = pattern_of(f"{name}:{point}" if point else name, tmp_path)
    assert len(pattern) == SLOTS
    met = {"IP2": [0], "IP8": [1, 1000]}.get(point, [1, 10])
    assert [slot for slot, filled in enumerate(pattern) if filled] == met


def test_a_scenario_keeps_the_collision_point(tmp_path: Path) -> None:
    write(tmp_path, [0, 5], [891, 896], "json")
    keys = {"event.arrivals": "lhc", "event.lhc.filling": f"{tmp_path}/scheme.json:IP2"}
    scenario = load("small-rack", keys)
    assert scenario.event.lhc.filling == f"{tmp_path}/scheme.json:IP2"
    assert scenario.event.lhc.pattern.count(1) == 2


def test_a_json_may_list_all_buckets(tmp_path: Path) -> None:
    """Ten buckets are a slot; bunches are in the first one."""
    one, two = bytearray(10 * SLOTS), bytearray(10 * SLOTS)
    one[10 * 5] = two[10 * (5 + 891)] = two[10 * 7] = 1
    (tmp_path / "rf.json").write_text(json.dumps({"beam1": [*one], "beam2": [*two]}))
    pattern = pattern_of("rf.json:ip2", tmp_path)
    assert (len(pattern), pattern.find(1), pattern.count(1)) == (SLOTS, 5, 1)
    one[11] = 1
    (tmp_path / "rf.json").write_text(json.dumps({"beam1": [*one], "beam2": [*two]}))
    with pytest.raises(ValueError, match="filled between the slots"):
        pattern_of("rf.json", tmp_path)


def test_numbers_of_bunches_are_no_buckets(tmp_path: Path) -> None:
    write(tmp_path, [1, 5], [1, 5], "csv")
    path = tmp_path / "scheme.csv"
    path.write_text("B1 bunches,2741\nB2 bunches,2741\n" + path.read_text())
    assert pattern_of(path.name, tmp_path).count(1) == 2


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json:IP8", '{"beam1": [1, 1], "beam2": [1, 1]}', "lists 2 slots; :IP8 is known for"),
        ("a.json:IP3", '{"beam1": [1, 1], "beam2": [1, 1]}', "expected IP1, IP2, IP5 or IP8"),
        ("a.csv:IP2", "B1 buckets,1\nB2 buckets,1\n", "expected beams that collide at IP2"),
        ("a.json", '{"beam1": [1]}', 'expected "beam1" and "beam2"'),
        ("a.json", '{"beam1": [1], "beam2": [1, 0]}', "of one length"),
        ("a.json", '{"beam1": [2], "beam2": [1]}', "lists of 0 and 1"),
        ("a.json", "{" * 100_000, 'expected "beam1" and "beam2"'),
        ("a.csv", "B1 filled buckets,1,11\n", "lists the buckets of one beam"),
        ("a.csv", "B1 filled,1\nB2 filled,5\n", 'has "5" where a bucket was expected'),
        ("a.csv", "B1 filled,1\nB2 filled,35641\n", "where a bucket was expected: 1, 11, … 35631"),
        ("a.txt:IP2", "2(3b 1e)", "does not list both beams; leave :IP2 out"),
        ("a.json", '{"beam1": [1, 0], "beam2": [0, 1]}', "fills no bunch"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, name, content, reason) -> None:
    (tmp_path / name.partition(":")[0]).write_text(content)
    with pytest.raises(ValueError, match=reason):
        pattern_of(name, tmp_path)


@given(st.text("0123456789be() ", max_size=60))
def test_any_scheme_expands_or_is_a_value_error(scheme: str) -> None:
    try:
        pattern = pattern_of(scheme, Path("/nonexistent"))
    except ValueError:
        return
    assert 1 in pattern
    assert len(pattern) <= MOST_CROSSINGS

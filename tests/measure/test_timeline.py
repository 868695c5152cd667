"""Stages that units keep, and the timeline of them."""

import json
import os
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daqloom import _engine
from daqloom.control.protocol.messages import (
    ROWS_AT_ONCE,
    MalformedError,
    StageRow,
    Trace,
    read_report,
)
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load
from daqloom.measure.run import measure
from daqloom.measure.timeline import measured_spans
from daqloom.results.timeline import Span, phase_columns, write_phases
from daqloom.scenario import ScenarioError
from daqloom.topology.schedule.slots import DUMMY
from support.measure.live_nodes import halt

HUNG_S = 60.0
NS = 1_000_000_000


LAPTOP = load("laptop").building


def system(*changes: str):
    return fabric_system(load("laptop", ["readout.units=2", *changes]))


def test_stages_become_spans_with_the_wait_for_the_last_one_apart() -> None:
    two = system()
    first, second = two.hosts
    stages = {
        0: [
            (10 * NS, 4, 0, 0, "sending"),
            (11 * NS, 4, 0, 0, "in_barrier"),
            (14 * NS, 4, 1, 1, "sending"),
            (15 * NS, 4, 1, 1, "in_barrier"),
        ],
        1: [
            (10 * NS, 4, 0, 1, "sending"),
            (13 * NS, 4, 0, 1, "in_barrier"),
            (14 * NS, 4, 1, -1, "idle"),
            (16 * NS, 4, 1, -1, "in_barrier"),
        ],
    }
    found = measured_spans(stages, 8 * NS, two, LAPTOP)
    assert sorted(found) == sorted(
        [
            Span(0, 0, "sending", first, 2, 3),
            Span(0, 0, "waiting", first, 3, 5),  # for the second one
            Span(0, 0, "releasing", first, 5, 6),
            Span(1, 0, "sending", second, 2, 5),
            Span(1, 0, "waiting", second, 5, 5),
            Span(1, 0, "releasing", second, 5, 6),
            Span(0, 1, "sending", second, 6, 7),
            Span(0, 1, "waiting", second, 7, 8),
            Span(0, 1, "releasing", second, 8, 8),
            Span(1, 1, "idle", DUMMY, 6, 8),
            Span(1, 1, "waiting", DUMMY, 8, 8),
            Span(1, 1, "releasing", DUMMY, 8, 8),
        ]
    )


def test_steps_go_on_from_epoch_to_epoch_in_whole_rounds() -> None:
    two = system()
    stages = {
        0: [(NS, 1, step, 0, "sending") for step in range(3)]
        + [(2 * NS, 2, step, 0, "sending") for step in range(2)]
    }
    # The last stage of an epoch ends with the last one reported.
    assert [span.step for span in measured_spans(stages, 0, two, LAPTOP)] == [0, 1, 2, 4, 5]


def test_the_last_steps_of_an_epoch_are_those_that_all_units_have_begun() -> None:
    stages = {
        unit: [(NS + step, 1, step, 0, "sending") for step in range(steps)]
        for unit, steps in ((0, 5), (1, 3))
    }
    assert max(span.step for span in measured_spans(stages, 0, system(), LAPTOP)) == 2
    never = {**stages, 1: [(NS, 1, 0, 0, "entering")]}
    assert measured_spans(never, 0, system(), LAPTOP) == []


def test_units_without_a_readout_unit_and_none_at_all_have_no_timeline() -> None:
    unfolded = fabric_system(load("laptop", ["builders.folded=false", "readout.units=2"]))
    assert measured_spans({}, 0, unfolded, LAPTOP) == []
    builder = unfolded.hosts.index(max(unfolded.builders.tolist()))
    assert measured_spans({builder: [(NS, 0, 0, 0, "sending")]}, 0, unfolded, LAPTOP) == []


def test_event_building_without_phases_has_no_timeline(tmp_path: Path) -> None:
    for options in ({"timeline": True}, {"trace": tmp_path / "trace.json"}):
        with pytest.raises(ScenarioError, match='protocol = "daqpipe" has no phases'):
            measure(load("laptop", ["building.protocol=daqpipe"]), **options)
    assert list(tmp_path.iterdir()) == []


def node(unit: int, run: str, kept: int) -> _engine.LiveNode:
    config = _engine.LiveConfig()
    config.unit, config.run, config.token = unit, run, b"0123456789abcdef"
    config.slots = _engine.RunSlots(readouts=[0, 1], builders=[0, 1])
    config.packing, config.fragment_bytes = 100, [200, 200]
    config.stream_buffer = config.output_buffer = 4_000_000
    config.trace_stages = kept
    return _engine.LiveNode(config)


def stages_of(node: _engine.LiveNode) -> list[StageRow]:
    return [(*row, stage.name) for *row, stage in node.take_stages()]


@pytest.fixture
def halted():
    """Two nodes that have built events, and how many stages each keeps."""
    run, members = f"test-{secrets.token_hex(4)}", [0, 1]
    nodes = [node(unit, run, kept) for unit, kept in zip(members, (100_000, 50), strict=True)]
    try:
        with ThreadPoolExecutor() as pool:
            addresses = [(unit, nodes[unit].prepare(0, members)) for unit in members]
            list(pool.map(lambda each: each.connect(addresses, HUNG_S), nodes))
            for each in nodes:
                each.start(0)
            until_s = time.monotonic() + HUNG_S
            while nodes[0].counters().phases < 100 and time.monotonic() < until_s:
                pass
            list(pool.map(halt, nodes))
        yield nodes, run
    finally:
        for each in nodes:
            each.shut()


def test_a_unit_keeps_the_stages_that_it_counts(halted, tmp_path: Path) -> None:
    nodes, _ = halted
    before_ns = time.time_ns()
    stages = {unit: stages_of(each) for unit, each in enumerate(nodes)}
    counted = nodes[0].counters()
    names = Counter(what for *_, what in stages[0])
    if len(stages[0]) < 100_000:  # with all stages
        assert names["sending"] - counted.phases in (0, 1)  # the last one may not be over
        assert names["in_barrier"] - counted.barriers in (0, 1)
    assert len(stages[1]) == 50
    assert all(begin_ns < before_ns for begin_ns, *_ in stages[0])
    assert stages[0] == sorted(stages[0], key=lambda row: row[0])
    assert {to for _, _, _, to, _ in stages[0]} == {0, 1}
    assert nodes[0].take_stages() == []

    two = system()
    found = measured_spans(stages, stages[0][0][0], two, LAPTOP)
    assert all(span.end_s >= span.begin_s >= 0 for span in found if span.node == 0)
    assert set(phase_columns(found, two)["node"]) == {two.fabric.hosts[h].name for h in two.hosts}
    write_phases(tmp_path / "trace.json", found, two)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(found)


def test_stages_come_in_messages_of_bounded_size(halted) -> None:
    rows = tuple(stages_of(halted[0][0]))[:ROWS_AT_ONCE]
    report = read_report(Trace(stages=rows).encode())
    assert isinstance(report, Trace)
    assert report.stages == rows
    row = [1, 0, 0, 0, "sending"]
    for stages in ([row] * (ROWS_AT_ONCE + 1), [[1, 0, 0, 0, "x" * 50]], [[-1, 0, 0, 0, "idle"]]):
        with pytest.raises(MalformedError):
            read_report(json.dumps({"kind": "trace", "stages": stages}).encode())


def test_the_histograms_agree_with_the_counters(halted) -> None:
    for each in halted[0]:
        counted = each.counters()
        assert sum(counted.building.values()) == counted.meps_delivered > 0
        assert sum(counted.in_barrier.values()) == counted.barriers > 0


def test_counters_outlive_their_unit(halted) -> None:
    from daqloom.control.counters.pages import Pages

    nodes, run = halted
    pages = Pages(run)
    pages.watch(0, os.getpid())
    pages.watch(7, os.getpid())
    pages.watch(8, 1 << 62)  # no process can have this number
    assert pages.watches(7)
    counted = nodes[0].counters().by_name
    nodes[0] = node(0, "another", 0)
    last = pages.last(0).by_name
    assert last["meps_built"] == counted["meps_built"] > 0
    idle = {"beats", "sleeps"}  # its data thread went on until it was gone
    assert {n: counted[n] for n in last.keys() - idle} == {n: last[n] for n in last.keys() - idle}
    assert pages.last(0) is None
    assert pages.last(7) is pages.last(8) is None
    with pytest.raises(OSError, match=f"daqloom/{run}/7/counters"):
        _engine.UnitCounters.attach(os.getpid(), run, 7)

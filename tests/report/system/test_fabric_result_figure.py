"""Figure of a run on a fabric: bars and loads are those of the run, and panels do not overlap."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daqloom
from daqloom.base.output import OutputError
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load
from daqloom.report import style
from daqloom.report.figure import Area, Bars, Figure, Panel, Text
from daqloom.report.matplotlib_renderer import canvas
from daqloom.report.system import event_figure, fabric_result_figure, write_latency
from daqloom.report.system.event_figure import Event
from daqloom.report.system.link_load import blocks, loads
from daqloom.report.system.phase_figure import MOST_NODES, spread
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from daqloom.system import System
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.shapes.clos import folded_clos
from support.command import record, refusal
from support.figures import marks, texts, titles
from support.small_fabrics import metrics, ring, small

BRIEF = {"run__warmup": "0 s", "run__duration": "0.5 ms"}
LATENCY = {"lowest_s": [1e-6, 2e-6, 8e-6], "width_s": [1e-6, 1e-6, 1e-6], "count": [90, 9, 1]}


def daqpipe(**changes: object) -> Scenario:
    return small(**({"building__protocol": "daqpipe", "building__credits": 3} | BRIEF | changes))


def panel(figure: Figure, title: str) -> Panel:
    [found] = [each for each in figure.panels if each.title.startswith(title)]
    return found


def bars(shown: Panel) -> dict[float, list[tuple[float, float]]]:
    """Beginning and end (ms) by height in the panel."""
    found = defaultdict(list)
    for each in marks(shown, Bars):
        for at, length, begin in np.broadcast(each.at, each.length, each.base):
            if length:
                found[round(float(at), 6)].append((float(begin), float(begin + length)))
    return {at: sorted(ends) for at, ends in found.items()}


def rows(series: Mapping[str, Any], *names: str) -> Any:
    return zip(*(series[name] for name in names), strict=True)


def carried(scenario: Scenario, fabric: Fabric, **more: Any) -> Result:
    """A result in which link number i has sent i kB and waited i ns for credits."""
    ends = [end for cable in fabric.cables for end in (cable.a, cable.b)]
    count = np.arange(len(ends))
    ports = {
        "name": [fabric.end_name(end) for end in ends],
        "bytes": (1000 * count).tolist(),
        "wait_credits_s": (1e-6 * count).tolist(),
        "wait_crossbar_s": (0 * count).tolist(),
    }
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        method="simulate",
        metrics={},
        series={"ports": ports} | more,
    )


@pytest.mark.parametrize("barrier", ["tournament", "centralised"])
@pytest.mark.parametrize("group", ["all", 2])
def test_waiting_and_releasing_add_up_to_the_engine_s_counts(barrier, group) -> None:
    rules = {"building__barrier": barrier, "building__barrier_group": group}
    result = methods.simulate(small(**rules, hosts__message_cost="2 us", **BRIEF), timeline=True)
    spent: dict[tuple[int, str], list[float]] = defaultdict(list)
    through = defaultdict(int)
    phases = result.series["phases"]
    for step, what, begin_s, end_s in rows(phases, "step", "what", "begin_s", "end_s"):
        spent[step, what].append(end_s - begin_s)
        through[step] += what == "releasing" and end_s < 0.5e-3
    whole = [step for step, nodes in through.items() if nodes == 4]
    assert len(whole) > 10
    for what in ("waiting", "releasing"):
        mean = np.mean([spent[step, what] for step in whole])
        assert mean == pytest.approx(metrics(result)[f"barrier_s.{what}"], rel=1e-9)


def test_every_node_sends_to_the_slot_of_its_phase() -> None:
    scenario = small(readout__units=3, **BRIEF)
    phases = methods.simulate(scenario, timeline=True).series["phases"]
    hosts = [host.name for host in fabric_system(scenario).fabric.hosts]
    slots = [*hosts[:3], "dummy"]
    for node, step, what, to in rows(phases, "node", "step", "what", "to"):
        assert to == slots[(slots.index(node) + step) % 4]
        assert (what == "sending") <= (to != "dummy")
    assert {"sending", "waiting", "releasing", "idle"} == set(phases["what"])


@pytest.mark.parametrize("barrier", ["none", "tournament"])
def test_the_timeline_has_a_row_for_each_node_and_a_bar_for_each_stage(barrier: str) -> None:
    scenario = small(building__barrier=barrier, **BRIEF)
    result = methods.simulate(scenario, timeline=True)
    figure = fabric_result_figure.figure(scenario, result)
    shown = panel(figure, "Sender and receiver in each phase, all nodes")
    names = [host.name for host in fabric_system(scenario).fabric.hosts]
    assert shown.y.names == names
    first, last = shown.x.ends
    assert 0 <= first < last <= 0.5
    expected = defaultdict(list)
    for node, begin_s, end_s in rows(result.series["phases"], "node", "begin_s", "end_s"):
        if end_s > begin_s and 1e3 * end_s > first and 1e3 * begin_s < last:
            seen = max(first, 1e3 * begin_s), min(last, 1e3 * end_s)
            expected[names.index(node) + 0.5].append(seen)
    drawn = bars(shown)
    assert drawn.keys() == expected.keys() == {0.5, 1.5, 2.5, 3.5}
    for row in drawn:
        assert np.allclose(drawn[row], sorted(expected[row]))
    assert any(text.startswith("to H") for text in texts(figure))
    assert ("in the barrier, release" in texts(figure)) == (barrier != "none")


def test_nodes_are_chosen_evenly_and_events_that_overlap_take_lanes_of_their_own() -> None:
    names = [str(place) for place in range(1 + 3 * (MOST_NODES - 1))]
    assert spread(names, MOST_NODES) == names[::3]
    assert spread(names[:5], MOST_NODES) == names[:5]
    a, b, c, d = (Event(begin, end, 0, True) for begin, end in ((0, 2), (1, 3), (2, 4), (2.5, 5)))
    assert event_figure.lanes([d, c, b, a]) == [[a, c], [b], [d]]


def test_events_stand_in_as_many_lanes_as_there_are_credits() -> None:
    scenario = daqpipe()
    result = methods.simulate(scenario, timeline=True)
    events = result.series["events"]
    under_way = [name for name, whole in rows(events, "builder", "whole") if not whole]
    assert len(under_way) == metrics(result)["events_in_flight"] / 4096
    assert max(under_way.count(name) for name in under_way) <= 3
    assert {end_s for end_s, whole in rows(events, "until_s", "whole") if not whole} == {0.5e-3}
    figure = fabric_result_figure.figure(scenario, result)
    shown = panel(figure, "Events collected by all builder units")
    first = shown.x.ends[0] or 0.0
    expected = [name for name, end_s in rows(events, "builder", "until_s") if 1e3 * end_s > first]
    assert sum(map(len, bars(shown).values())) == len(expected)
    assert len(bars(shown)) == 4 * 3


def test_the_load_of_a_cable_is_its_bytes_over_its_capacity() -> None:
    scenario = small()
    fabric = fabric_system(scenario).fabric
    result = methods.simulate(scenario)
    found = loads(fabric, result, 2e-3)
    [leaves] = blocks(fabric)
    assert leaves.rows == ["leaf00", "leaf01"]
    hosts, spines = leaves.tables
    # Behind two hosts, a leaf's ports 3 and 4 go to spine 0 and 1.
    assert [group.label for group in spines.groups] == ["spine00", "spine01"]
    ports = result.series["ports"]
    sent = dict(rows(ports, "name", "bytes"))
    waited = dict(rows(ports, "name", "wait_credits_s"))
    for row, leaf in enumerate(leaves.rows):
        for column in range(2):
            up = spines.up[row, column]
            name = f"{leaf} port {3 + column}"
            assert sent[name] > 0
            assert found.busy[up] == pytest.approx(sent[name] * 8 / (200e9 * 2e-3), rel=1e-12)
            assert found.waiting[up] == waited[name] / 2e-3
            back = f"spine0{column} port {1 + row}"
            assert found.busy[up ^ 1] == pytest.approx(sent[back] * 8 / (200e9 * 2e-3), rel=1e-12)
    mean = found.busy[hosts.up].mean()
    assert mean == pytest.approx(metrics(result)["link_utilisation.host.up"], rel=1e-12)


def three_level() -> Fabric:
    sizes = {"pods": 4, "leaves": 4, "spines": 4, "cores": 4, "hosts_per_leaf": 4}
    return folded_clos("three", **sizes, rate_bps=10**11)


def island() -> Fabric:
    """Two hosts at a leaf, two hosts at each other, two switches without hosts."""
    ends = (0, 1, 4, 1), (1, 1, 4, 2), (2, 1, 3, 1), (5, 1, 6, 1), (6, 2, 5, 3)
    hosts = tuple(Node(f"H{place}", 1) for place in range(4))
    switches = tuple(Node(name, 4) for name in ("leaf", "lost0", "lost1"))
    cables = tuple(Cable(End(*each[:2]), End(*each[2:]), 10**11) for each in ends)
    return Fabric("island", hosts, switches, cables)


def fabric_of(name: str, folder: Path) -> Fabric:
    if name in ("three", "island"):
        return three_level() if name == "three" else island()
    scenario = ring(folder) if name == "ring" else load(name)
    return fabric_system(scenario).fabric


@pytest.mark.parametrize("name", ["three", "island", "ring", "daqpipe-cluster64", "lhcb-run3"])
def test_every_cable_stands_in_one_cell_of_the_map(name: str, tmp_path: Path) -> None:
    fabric = fabric_of(name, tmp_path)
    grids = [table.up for block in blocks(fabric) for table in block.tables]
    links = [link for grid in grids for link in grid.ravel().tolist() if link != NONE]
    at_switches = [
        index
        for index, cable in enumerate(fabric.cables)
        if max(cable.a.node, cable.b.node) >= len(fabric.hosts)
    ]
    assert sorted(link // 2 for link in links) == at_switches
    for block in blocks(fabric):
        for table in block.tables:
            assert sum(group.count for group in table.groups) == table.up.shape[1]
            for (row, _), link in np.ndenumerate(table.up):
                cable = fabric.cables[link // 2]
                assert link == NONE or block.rows[row] in {
                    fabric.nodes[cable.a.node].name,
                    fabric.nodes[cable.b.node].name,
                }


def test_a_missing_host_leaves_its_cell_empty() -> None:
    fabric = fabric_of("daqpipe-cluster64", Path())
    [leaves] = blocks(fabric)
    hosts, spines = leaves.tables
    assert [group.label for group in hosts.groups] == [str(port) for port in range(1, 19)]
    # Missing hosts in the output of `daqloom topology show cluster64`.
    assert np.flatnonzero(hosts.up[0] == NONE).tolist() == [3 - 1, 16 - 1]
    assert np.flatnonzero(hosts.up[1] == NONE).tolist() == [8 - 1, 9 - 1, 17 - 1]
    assert [group.label for group in spines.groups] == ["spine00", "spine01"]
    cell = hosts.up[1, 17]
    cable = fabric.cables[cell // 2]
    assert End(fabric.switch_node(1), 18) in (cable.a, cable.b)


@pytest.mark.parametrize("name", ["shift", "daqpipe", "cluster64", "ring", "wide"])
def test_no_panel_covers_another_and_none_leaves_the_page(name: str, tmp_path: Path) -> None:
    scenario: Any = {"shift": small(**BRIEF), "daqpipe": daqpipe()}.get(name)
    if scenario is not None:
        result = methods.simulate(scenario, timeline=True)
        result = replace(result, series={**result.series, "write_latency": LATENCY})
    else:
        scenario = {
            "cluster64": load("daqpipe-cluster64"),
            "ring": ring(tmp_path),
            "wide": load("lhcb-500"),
        }[name]
        result = carried(scenario, fabric_system(scenario).fabric, write_latency=LATENCY)
    figure = canvas(fabric_result_figure.figure(scenario, result))
    figure.set_dpi(72)
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box in boxes:
        assert box.x0 >= 0 <= box.y0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height
    for one, other in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        along = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across < 1 or along < 1


@pytest.mark.parametrize("is_short", [True, False])
def test_the_title_has_the_rate_of_writes_where_few_rounds_were_counted(is_short: bool) -> None:
    changes = {"run__warmup": "0.2 ms"} | ({} if is_short else {"run__duration": "6 ms"})
    scenario = small(**(BRIEF | changes))
    result = methods.simulate(scenario, seed=1)
    warned = any("use written_event_rate_hz" in each for each in result.warnings)
    assert warned == is_short
    rate_hz = result.metrics["written_event_rate_hz" if is_short else "event_rate_hz"]
    name = "event rate, fragments written" if is_short else "event rate"
    written = texts(fabric_result_figure.figure(scenario, result))
    [shown] = [text for text in written if "seed 1" in text]
    assert shown.startswith(f"{name} {rate_hz / 1e6:.3g} MHz; throughput")
    assert ("fragments written" in shown) == is_short


def test_without_a_timeline_the_cables_are_drawn() -> None:
    scenario = small(**BRIEF)
    figure = fabric_result_figure.figure(scenario, methods.simulate(scenario))
    levels = "hosts", "leaves", "spines", "leaves", "hosts"
    tables = [" → ".join(pair) for pair in pairwise(levels)]
    assert [title for title in titles(figure) if title] == ["Latency of writes", *tables]


def test_the_histogram_has_the_shares_of_its_buckets_and_the_numbers_of_the_result() -> None:
    lowest, width, count = (np.array(LATENCY[name], float) for name in LATENCY)
    done = write_latency.completions(
        [0, 1.5e-6, 2e-6, 3e-6, 7e-6, 1], lowest, lowest + width, count
    )
    assert done.tolist() == pytest.approx([0, 45, 90, 99, 99, 100])
    shown = write_latency.panel(LATENCY)
    [steps] = marks(shown, Area)
    assert sum(steps.high[:-1]) == pytest.approx(1)
    assert shown.y.ends[1] == 1
    assert not shown.x.log
    assert marks(shown, Text)[0].text == ["median 1.50 µs\n99 % 2.50 µs\nslowest 9.00 µs"]
    scenario = small(**BRIEF)
    result = methods.simulate(scenario)
    lines = [
        f"{text} {style.seconds(float(result.metric(f'write_latency_s.{key}') or 0))}"
        for text, key in (("median", "p50"), ("99 %", "p99"), ("slowest", "max"))
    ]
    assert "\n".join(lines) in texts(fabric_result_figure.figure(scenario, result))


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_names_from_dumps_are_no_formulas(ending: str, tmp_path: Path) -> None:
    scenario = ring(tmp_path)
    for file in ("ibnetdiscover.txt", "opensm-lfts.dump"):
        text = (tmp_path / file).read_text()
        evil = text.replace("sw0", r"$\bad{<&$").replace("h0", r"$^$")
        (tmp_path / file).write_text(evil)
    fabric = fabric_system(scenario).fabric
    picture = tmp_path / "pictures" / f"figure.{ending}"
    daqloom.write_figure(System(scenario), carried(scenario, fabric), picture)
    assert list(picture.parent.iterdir()) == [picture]
    assert picture.stat().st_size > 1000


def test_a_result_of_another_fabric_is_refused_in_one_sentence(tmp_path: Path) -> None:
    result = methods.simulate(small(**BRIEF))
    with pytest.raises(OutputError, match=r"has no port H02-00; expected series\.ports of a sim"):
        daqloom.write_figure(System(small(network__leaves=3)), result, tmp_path / "figure.png")


def test_the_command_draws_and_its_json_stays_the_same(tmp_path: Path) -> None:
    file, picture = tmp_path / "small.toml", tmp_path / "figure.pdf"
    file.write_text(daqloom.scenario.to_toml(small(**BRIEF)))
    plain = record("simulate", file)
    drawn = record("simulate", file, "--figure", picture)
    assert picture.read_bytes().startswith(b"%PDF")
    assert "series" not in drawn
    assert drawn["metrics"] == plain["metrics"]
    refused = refusal("simulate", file, "--json", "--figure", tmp_path / "figure.html")
    assert refused.endswith("the name must end in .png or .pdf or .svg")

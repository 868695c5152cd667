"""Studies over fabrics: the same mechanism as over racks, from the file to the report."""

import functools
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load, override
from daqloom.report.figure import Cells
from daqloom.report.matplotlib_renderer import canvas
from daqloom.report.study.report import pictures, write_report
from daqloom.results.result import Result
from daqloom.scenario import Scenario, ScenarioError
from daqloom.scenario.file import load as read
from daqloom.study import StudyError
from daqloom.study.file import kinds, points
from daqloom.study.file.cell import Cell
from daqloom.study.file.hasher import ScenarioHasher
from daqloom.study.file.load import load_study
from daqloom.study.file.study import Study
from daqloom.study.methods import methods
from daqloom.study.run.dataset import open_study, to_dataset
from daqloom.study.run.plan import cost_s, plan
from daqloom.study.run.runner import run
from daqloom.study.store.store import Store
from support import small_studies
from support.command import invoke, output
from support.figures import marks, texts, titles
from support.small_fabrics import INFINIBAND, SMALL
from support.small_studies import complete

TREE = """
title = "Small"
scenario = "./tree.toml"
"""
FABRIC = """
[network]
technology = "infiniband"
leaves = 2
spines = 2
spine_links = 2
hosts_per_leaf = 4
switch.radix = 8
[event]
fragment_size = "100 B"
packing = 1024
[readout]
streams = 1
[hosts]
message_cost = "200 ns"
[run]
duration = "0.5 ms"
warmup = "0.1 ms"
"""
"""Two leaves with four hosts each, MFPs of 25 packets."""

BARRIERS = (
    TREE
    + """
[[zip]]
"readout.units" = [4, 8]
"event.groups" = [
    [{ sources = 2, share = 0.5 }, { sources = 2, share = 1 }],
    [{ sources = 4, share = 0.5 }, { sources = 4, share = 1 }],
]
[grid]
"building.barrier" = ["tournament", "none"]
[repeat]
seeds = 2
[report]
show = ["node_throughput_bps", "barrier_share"]
"""
)


def written(folder: Path, text: str) -> Study:
    (folder / "tree.toml").write_text(FABRIC)
    return small_studies.written(folder, text)


def test_a_study_of_a_fabric_runs_once_and_is_printed_with_units(tmp_path: Path) -> None:
    study = written(tmp_path, BARRIERS)
    assert study.shape == (2, 2)
    assert [axis.name for axis in study.axes] == ["building.barrier", "readout.units"]
    first, again = (complete(study, tmp_path / "store") for _ in range(2))
    assert (first.computed, first.failures) == (8, [])
    assert (again.computed, again.reused) == (0, 8)
    found = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    assert found["readout.units"].values.tolist() == [4, 8]
    assert json.loads(found["event.groups"].values[0])[1] == {"sources": 2, "share": 1}
    units = {name: found[name].attrs.get("units") for name in found.data_vars}
    assert units["node_throughput_bps"] == "bit/s"
    assert units["barrier_share"] == units["link_utilisation.fabric"] == "1"
    assert units["xmit_wait_s.credits"] == units["phase_s"] == "s"
    assert points.operating_point(found) == {}
    assert not found["saturated"].any()
    kept = found["barrier_share"].sel({"by": "simulate"}).mean("seed")
    assert bool((kept.sel({"building.barrier": "none"}) == 0).all())
    assert bool((kept.sel({"building.barrier": "tournament"}) > 0.01).all())
    # The very results of the systems that the points stand for.
    at = {"by": "simulate", "building.barrier": "tournament", "readout.units": 8, "seed": 2}
    alone = methods.simulate(study.scenario((0, 1)), seed=2)
    assert found["node_throughput_bps"].sel(at).item() == alone.metric("node_throughput_bps")


def test_quantities_and_speeds_of_a_fabric_are_coordinates_in_si_units(tmp_path: Path) -> None:
    axes = '[grid]\n"network.switch.buffer" = ["8 KiB", "64 KiB"]\n'
    axes += '"network.links.rate" = ["100 Gb/s"]\n'
    waits = '[[zip]]\n"hosts.polling_delay" = { from = "1 us", to = "2 us", step = "1 us" }\n'
    found = to_dataset(written(tmp_path, TREE + axes + waits), [])
    assert found["network.switch.buffer"].values.tolist() == [8192, 65536]
    assert found["network.links.rate"].values.tolist() == [100e9]
    assert found["hosts.polling_delay"].values.tolist() == pytest.approx([1e-6, 2e-6])
    units = {
        axis: found[axis].attrs["units"] for axis in ("network.switch.buffer", "network.links.rate")
    }
    assert units == {"network.switch.buffer": "B", "network.links.rate": "b/s"}
    study = written(tmp_path, TREE + '[grid]\n"network.links.rate" = ["EDR", "HDR", "50 Gb/s"]\n')
    assert study.axes[0].coordinates("network.links.rate", study.base) == [100e9, 200e9, 50e9]
    point = study.scenario((0,))
    assert isinstance(point, Scenario)
    assert point.network.links.rate == 100e9


def test_variants_and_set_take_lists_of_tables(tmp_path: Path) -> None:
    text = """
[set]
"event.groups" = [{ sources = 8, share = 1 }]
[variants]
"alike" = {}
"two kinds" = { "event.groups" = [{ sources = 4, share = 1 }, { sources = 4, share = 2 }] }
"lanes" = { network.lanes.count = 2, network.lanes.low = [[0, 64], [1, 32]] }
"""
    study = written(tmp_path, TREE + text)
    assert isinstance(study.base, Scenario)
    assert [group.sources for group in study.base.event.groups] == [8]
    points = [study.scenario(index) for index in study.indices()]
    assert [len(point.event.groups) for point in points] == [1, 2, 1]  # type: ignore[attr-defined]
    assert points[2].network.lanes.low == ((0, 64), (1, 32))  # type: ignore[attr-defined]
    assert [study.hasher.hash(study.overrides(index)) for index in study.indices()] == [
        point.hash() for point in points
    ]


SEARCH = (
    TREE
    + """
[set]
"building.barrier" = "none"
[search]
key = "network.switch.buffer"
find = "smallest"
where = "xmit_wait_s.credits < {limit}"
bounds = ["4160 B", "64 KiB"]
tolerance = "1 KiB"
"""
)


def test_a_search_finds_the_buffer_that_credits_need(tmp_path: Path) -> None:
    base = override(written(tmp_path, TREE).base, {"building.barrier": "none"})

    def waited_s(buffer: float) -> float:
        result: Result = methods.simulate(
            override(base, {"network.switch.buffer": f"{buffer:g} B"}), seed=1
        )  # type: ignore[attr-defined]
        return float(result.metric("xmit_wait_s.credits") or 0.0)

    least, most = waited_s(65536), waited_s(4160)  # one packet at a time waits for its credits
    assert most > 2 * least
    study = written(tmp_path, SEARCH.format(limit=f"{(least + most) / 2:g}"))
    complete(study, tmp_path / "store")
    found = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    assert found["boundary_status"].values.ravel().tolist() == ["found"]
    assert found["boundary"].attrs["units"] == "B"
    buffer = found["boundary"].item()
    assert waited_s(buffer) < (least + most) / 2 <= waited_s(buffer - 1024)


@pytest.mark.process
def test_two_workers_give_the_same_numbers_as_one(tmp_path: Path) -> None:
    from daqloom.study.run.workers import DaskExecutor

    study = written(tmp_path, BARRIERS)
    complete(study, tmp_path / "one")
    executor = DaskExecutor(tmp_path / "two", workers=2)
    try:
        with Store.open(tmp_path / "two", create=True) as store:
            assert run(study, store, executor).computed == 8
    finally:
        executor.close()
    one, two = (
        open_study(tmp_path / "mine.toml", store=tmp_path / name) for name in ("one", "two")
    )
    assert set(one.data_vars) == set(two.data_vars)
    for name in one.data_vars:
        assert one[name].values.tobytes() == two[name].values.tobytes(), name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[grid]\n"building.barier" = ["none"]', 'did you mean "building.barrier"'),
        ('[grid]\n"event.rat" = ["1 kHz"]', 'did you mean "event.rate"'),
        ('[grid]\n"network.switch.buffer" = [65536]', "has no unit"),
        ('[grid]\n"readout.units" = [4, 99999]', "readout.units = 99999 is too large"),
        ('[grid]\n"readout.units" = [[4], [8]]', "readout.units = [4] is not a whole number"),
        ('[grid]\n"readout.units" = [4, { a = 1 }]', "neither a single value nor a list"),
        ('[equilibrium]\nlongest = "2 ms"', "records no course over time"),
        ('[report]\nshow = ["buffer_peak_bytes.tor"]', "buffer_peak_bytes.tor is not given by"),
        ('[report]\nshow = ["barrier_shar"]', 'did you mean "barrier_share"'),
        ("[search]\nkey = 'network.switch.bufer'\nfind = 'smallest'\nwhere = 'phases > 1'\n"
         "bounds = ['8 KiB', '9 KiB']\ntolerance = '1 KiB'", 'mean "network.switch.buffer"'),
        ("[search]\nkey = 'network.switch.buffer'\nfind = 'smallest'\n"
         "where = 'events_waiting == 0'\n"
         "bounds = ['8 KiB', '9 KiB']\ntolerance = '1 KiB'", ", only by simulate (pull)"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StudyError, match=r"^[^\n]+$") as caught:
        written(tmp_path, TREE + text)
    assert says in str(caught.value)


def test_a_rack_has_no_metrics_of_fabrics(tmp_path: Path) -> None:
    path = tmp_path / "rack.toml"
    path.write_text('scenario = "small-rack"\n[report]\nshow = ["barrier_share"]\n')
    with pytest.raises(
        StudyError,
        match=r"barrier_share is not given by simulate for this system \(pull, .*\), only by",
    ):
        load_study(path)


def test_kinds_have_model_versions_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rack, fabric = (Cell(base, {}, "simulate", 1, "same") for base in (load("small-rack"), tree()))
    before = fabric.key
    monkeypatch.setattr(kinds, "RACK", replace(kinds.RACK, versions={"analyse": 9, "simulate": 9}))
    assert rack.key != Cell(rack.base, {}, "simulate", 2, "same").key
    assert Cell(fabric.base, {}, "simulate", 1, "same").key == before
    monkeypatch.setattr(kinds, "FABRIC", replace(kinds.FABRIC, versions={"simulate": 9}))
    assert Cell(fabric.base, {}, "simulate", 1, "same").key != before


def tree() -> Scenario:
    return override(INFINIBAND, SMALL)


# Plans


def test_a_large_plan_builds_no_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daqloom.deployment import fabric_system

    monkeypatch.setattr(fabric_system, "fabric_system", lambda _: pytest.fail("built"))
    study = written(
        tmp_path,
        TREE
        + """
[grid]
"network.switch.buffer" = { from = "5 kB", to = "1000 kB", step = "5 kB" }
[variants]
"tree" = {}
"cluster" = { "network.shape" = "imported", "network.dumps" = "cluster64" }
""",
    )
    built = 0
    slow = read.override

    def counted(scenario: Scenario, overrides: object) -> Scenario:
        nonlocal built
        built += 1
        return slow(scenario, overrides)  # type: ignore[arg-type]

    monkeypatch.setattr(read, "override", counted)
    found = plan(study, None)
    assert (found.tasks, found.refused) == (400, 0)
    assert found.cpu_s > 0
    assert built < 420  # each value once at most; a file's digest is no reason for a second


CLUSTER = {"network.shape": "imported", "network.dumps": "cluster64"}


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ({"run.duration": "4 ms"}, 2.0),
        ({"readout.units": 2}, 0.5),  # of 4 hosts
        ({"network.links.rate": "100 Gb/s"}, 0.5),
        ({"transport.mtu": "2048 B"}, (4096 + 26) / (2048 + 26)),
        ({"event.rate": "1 kHz"}, 1e3 * 100 / 4096 / (200e9 / 8 / (4096 + 26))),
        ({"network.links.rate": "EDR"}, 0.5),
        (CLUSTER | {"network.links.rate": "HDR"}, 64 / 4),
        (CLUSTER | {"network.links.rate": "0 b/s"}, 0.64),  # 4x SDR
    ],
)
def test_the_cost_grows_with_the_packets(changes: dict[str, object], factor: float) -> None:
    base = override(tree(), {"run.duration": "2 ms", "event.packing": 4096})
    one, other = (cost_s(Cell(base, each, "simulate", 1, "")) for each in ({}, changes))
    assert other / one == pytest.approx(factor)


def test_the_estimate_is_about_the_packets_of_a_run_or_zero(tmp_path: Path) -> None:
    base = load("lhcb-10-percent", {"run.duration": "3 ms", "run.warmup": "1 ms"})
    result = methods.simulate(base)
    hops = kinds.FABRIC.simulation_s(base, {}) * 2.5e6
    assert 1 / 3 < hops / result.engine["packet_hops"] < 3  # type: ignore[operator]
    (tmp_path / "ibnetdiscover.txt").write_text("Switch")
    dumps = {"network.shape": "imported", "network.dumps": str(tmp_path)}
    assert cost_s(Cell(tree(), dumps, "simulate", 1, "")) == 0


CHOICES: dict[str, list[object]] = {
    "building.barrier": ["none", "tournament", "ideal"],
    "network.switch.buffer": ["64 KiB", "65536 B", "8 KiB"],
    "network.shape": ["fat-tree", "imported"],
    "network.dumps": ["cluster64", "fattree72"],
    "network.lanes.low": [[[0, 64]], [[0, 32]]],
    "event.groups": [[], [{"sources": 4, "share": 1}], [{"sources": 4, "share": 2.5}]],
    "readout.units": [0, 4],
    "building.protocol": ["shift", "daqpipe"],
    "building.credits": [1, 8],
    "run.duration": ["2 ms", "3 ms"],
}


@functools.cache
def slow_hash(changes: str) -> str | None:
    """Return the hash of a small tree with changes; None where they make no system."""
    try:
        return override(tree(), json.loads(changes)).hash()
    except ScenarioError:
        return None


@settings(max_examples=40)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(CHOICES)), st.integers(0, 2), max_size=5),
        min_size=1,
        max_size=6,
    )
)
def test_the_quick_hash_is_the_hash(points: list[dict[str, int]]) -> None:
    hasher = ScenarioHasher(tree())
    for point in points * 2:
        changes = {key: CHOICES[key][at % len(CHOICES[key])] for key, at in point.items()}
        slow = slow_hash(json.dumps(changes))
        if slow is not None:
            assert hasher.hash(changes) == slow, changes


def test_a_changed_dump_is_another_system(tmp_path: Path) -> None:
    dump = tmp_path / "ibnetdiscover.txt"
    imported = {"network.shape": "imported", "network.dumps": str(tmp_path)}
    keys = []
    for text in ("one", "two"):
        dump.write_text(text)
        keys.append(ScenarioHasher(tree()).hash(imported))
        assert keys[-1] == override(tree(), imported).hash()
    assert keys[0] != keys[1]


LATENCY = {"hosts.latency.kind": "exponential", "hosts.latency.mean": "100 ns"}


@pytest.mark.parametrize(
    ("name", "index", "preset", "more"),
    [
        ("daqpipe-grid", (2, 2, 0), "daqpipe-fattree72", LATENCY),
        ("daqpipe-grid", (2, 2, 1), "daqpipe-cluster64", LATENCY),
        ("lhcb-barriers", (3, 0), "lhcb-run3-test-160", {"event.fragment_sizes": "poisson"}),
    ],
)
def test_shipped_studies_go_through_shipped_scenarios(
    name: str, index: tuple[int, ...], preset: str, more: dict[str, object]
) -> None:
    point = load_study(name).scenario(index)
    length = {key: f"{getattr(point.run, key)} s" for key in ("duration", "warmup")}
    same = load(preset, {f"run.{key}": value for key, value in length.items()} | more)
    assert point.hash() == same.hash()


# Output


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that two studies of a fabric have filled."""
    folder = tmp_path_factory.mktemp("ran")
    complete(written(folder, BARRIERS), folder / "store")
    (folder / "barriers.toml").write_text(BARRIERS)
    (folder / "grid.toml").write_text(
        TREE
        + """
[set]
"building.protocol" = "daqpipe"
[grid]
"building.parallel_sends" = [1, 2]
"building.credits" = [1, 2]
[variants]
"even" = {}
"short queues" = { "network.switch.input_queue" = "fifo" }
"""
    )
    complete(load_study(folder / "grid.toml"), folder / "store")
    return folder


def run_in(folder: Path, *words: str) -> str:
    return output(*words, "--store", folder / "store")


RACKS_ONLY = ("top-of-rack", "ToR", "ATLAS", "links carry", "operating point", "Hatched")


def test_a_report_names_the_metrics_and_axes_of_the_study(ran: Path, tmp_path: Path) -> None:
    run_in(ran, "report", str(ran / "barriers.toml"), "--output", str(tmp_path))
    page = (tmp_path / "report.html").read_text()
    text = re.sub('data:[^"]*"', "", page.split("<script")[0])  # without pictures
    assert "throughput of a node" in text
    assert "time in barriers" in text
    assert "2 × barrier, 2 × readout units" in text
    assert not [word for word in RACKS_ONLY if word in text]
    assert {path.name for path in tmp_path.glob("*.png")} == {"lines.png", "seeds.png"}


def test_pictures_show_the_event_rate_and_the_map_divides_variants(ran: Path) -> None:
    found = open_study(ran / "grid.toml", store=ran / "store")
    shown = pictures(found)
    assert [each.name for each in shown] == ["lines", "map"]
    assert titles(shown[1].figure) == ["Even", "Short queues", "Short queues ÷ even"]
    assert "credits" in texts(shown[1].figure)
    [ratio] = marks(pictures(found)[1].figure.panels[2], Cells)
    rate = found["event_rate_hz"].sel({"by": "simulate", "seed": 1})
    share = rate.sel(variant="short queues") / rate.sel(variant="even")
    expected = share.transpose("building.credits", "building.parallel_sends").values
    assert ratio.values.ravel() == pytest.approx(expected.ravel())


def test_every_metric_of_a_fabric_can_be_shown(ran: Path, tmp_path: Path) -> None:
    found = open_study(ran / "barriers.toml", store=ran / "store")
    for show in ("xmit_wait_s.credits", "barrier_s.waiting", "phase_s", "link_utilisation.fabric"):
        for each in pictures(found, show):
            canvas(each.figure).draw_without_rendering()
    assert write_report(found, tmp_path, show="barrier_s.waiting")[0].exists()


def test_plan_and_conclusions_of_fabrics(ran: Path) -> None:
    text = run_in(ran, "study", "plan", str(ran / "barriers.toml"))
    assert "2 building.barrier × 2 readout.units = 4, seeds 2" in text
    assert "8 of 8 complete" in text
    refused = invoke("study", "levels", ran / "barriers.toml", "--store", ran / "store")
    assert refused.exit_code == 2
    assert len(refused.output.strip().splitlines()) == 1
    assert "over time, which only simulated pull building" in refused.output


@pytest.mark.process
def test_a_job_array_fills_the_same_store(tmp_path: Path) -> None:
    from daqloom.study.run.slurm import job_array

    written(tmp_path, BARRIERS)
    script = tmp_path / "job.sh"
    script.write_text(
        job_array(
            tmp_path / "mine.toml",
            tmp_path / "store",
            elements=2,
            quick=False,
            hours=1,
            memory_mb=300,
        )
    )
    for element in range(2):
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(element)}
        subprocess.run(["bash", script], env=environment, check=True, capture_output=True)
    assert complete(load_study(tmp_path / "mine.toml"), tmp_path / "store").computed == 0


def test_a_point_that_is_no_fabric_fails_alone(tmp_path: Path) -> None:
    study = written(tmp_path, TREE + '[grid]\n"readout.units" = [4, 9, 8]\n')  # of 8 hosts
    progress = complete(study, tmp_path / "store")
    assert progress.computed == 2
    [(task, sentence)] = progress.failures
    assert task.index == (1,)
    assert "readout.units = 9 takes 9 hosts, and the network has 8" in sentence

"""Every metric that a method declares comes out of it, and nothing else does."""

import asyncio
from pathlib import Path
from typing import Any, get_args

import grpc
import pytest

from daqloom.control.control import Control
from daqloom.deployment.scenarios import load
from daqloom.lab import validity
from daqloom.measure import run as live
from daqloom.results.metrics import (
    COST,
    METRICS,
    TAKES,
    Metric,
    find_declaration,
    flatten,
    with_unit,
)
from daqloom.results.result import METHODS, Result
from daqloom.scenario import Scenario
from daqloom.scenario.schema.building import Building
from daqloom.scenario.schema.network import Shape
from daqloom.scenario.schema.parts import Parts
from daqloom.scenario.schema.switches import LEVELS
from daqloom.scenario.schema.transport import Kind
from daqloom.study.methods import methods
from support.measure.tiny_runs import tiny_daqpipe
from support.namespaces import can_make_networks
from support.small_fabrics import daqpipe, small

RUNNING = live._until_running
RETRIES = {"transport__retry_timeout": "100 us", "network__switch__head_of_queue_lifetime": "5 us"}


def rack(**changes: object) -> Scenario:
    short: dict[str, object] = {"run__duration": "100 ms", "run__warmup": "20 ms"}
    keys = {key.replace("__", "."): value for key, value in (short | changes).items()}
    found = load("small-rack", keys)
    assert isinstance(found, Scenario)
    return found


def windows(**changes: object) -> Scenario:
    return small(**({"building__change": "window", "building__window": "100 us"} | changes))


PACED = {"building__pace": "builder", "building__synchronise": "adaptive"}


def probe() -> Scenario:
    found = load("ib-buffer-probe")
    assert isinstance(found, Scenario)
    return found


SHARED = {"network__switch__tor__model": "shared-memory", "network__switch__tor__buffer": "4 MB"}
QUEUES = {"network__switch__tor__model": "drop-tail", "network__switch__tor__queue_packets": 8}
QUEUES |= {"run__duration": "1 s"}
STORED = {"storage__units": 1, "storage__accepted": 1}

TREE = {"network__technology": "ethernet", "network__shape": "fat-tree"}
TREE |= {"network__switch__leaf__model": "shared-memory", "network__switch__leaf__buffer": "4 MB"}
ROCE = TREE | {"transport__kind": "rdma", "transport__retry_timeout": "100 us"}
TCP = TREE | {"transport__kind": "tcp"}
PULL = {"building__protocol": "pull", "event__size": "100 kB", "event__rate": "20 kHz"}
PULL |= {"readout__units": 2, "builders__units": 1, "builders__folded": False}
BESIDE = {"flows__a__source": 0, "flows__a__destination": 1}
FLOW = BESIDE | {"building__protocol": "none"}

TWO_LEVELS = {"transport__control_service_level": 1}
CLASSES = TWO_LEVELS | {"network__switch__leaf__scheduling": "strict"}

BROKEN = {"faults__cables": 1}
LATE = {"building__jitter__kind": "exponential", "building__jitter__mean": "1 us"}

LIVE_CARD = {"event__rate": "100 Hz", "readout__card__buffer": "1 MB"}
CARDS = {"event__rate": "10 MHz", "readout__card__buffer": "1 MB"}
MENDED = small(**BROKEN, network__routing="mended")


def shifts(**changes: object) -> list[Scenario]:
    variants = ({}, RETRIES, CARDS, PACED)
    return [windows(**changes), *(small(**changes, **each) for each in variants)]


ANALYSED = {
    "rack": [rack(), rack(**SHARED)],
    "rack with storage": [rack(**STORED), rack(**STORED, **SHARED)],
    "shift": [small(), windows(), small(**LATE)],
    "shift on broken cables": [small(**BROKEN), windows(**BROKEN), small(**LATE, **BROKEN), MENDED],
    "daqpipe": [daqpipe()],
}
SIMULATED = {
    "rack": [rack(), rack(**SHARED), rack(**QUEUES)],
    "rack with storage": [rack(**STORED, **each) for each in ({}, SHARED, QUEUES)],
    "shift": shifts(),
    "daqpipe": [daqpipe(), daqpipe(**RETRIES)],
    "flows": [probe(), small(**FLOW, **RETRIES)],
    "pull over TCP": [small(**TCP, **PULL)],
    "pull over RoCE": [small(**ROCE, **PULL)],
    "pull over InfiniBand": [small(**PULL, **RETRIES)],
    "flows over RoCE": [small(**ROCE, **FLOW)],
    "pull in a rack beside a flow": [rack(**BESIDE, **each) for each in ({}, SHARED, QUEUES)],
    "shift beside a flow": shifts(**BESIDE),
    "DAQPIPE over TCP beside a flow": [daqpipe(**TCP, **BESIDE)],
    "DAQPIPE over TCP": [daqpipe(**TCP)],
    "pull over TCP with classes": [small(**TCP, **PULL, **CLASSES)],
    "shift with service levels": shifts(**TWO_LEVELS),
}
SOMETIMES = {f"buffer_{what}_bytes.{level}" for what in ("peak", "needed") for level in LEVELS}
SOMETIMES |= {"drops_by_port.*", "drop_fraction", "pause_frames"}
"""Given where there is something to tell."""


def given(result: Result) -> set[str]:
    """The names of the declarations of what came out."""
    names = set()
    for path in flatten(result.metrics):
        metric = find_declaration(path)
        assert metric is not None, path
        names.add(metric.name)
    return names


def declared(method: str, parts: Parts, metrics: tuple[Metric, ...] = METRICS) -> set[str]:
    return {metric.name for metric in metrics if parts & metric.given_by(method)}


def expect_as_declared(method: str, scenarios: list[Scenario], results: list[Result]) -> None:
    parts = scenarios[0].parts
    came = set.union(*map(given, results))
    assert came - declared(method, parts) == set()
    assert declared(method, parts) - came - (SOMETIMES if method == "simulate" else set()) == set()
    for result in results:
        assert set(result.engine) == declared(method, parts, COST)


@pytest.mark.parametrize("system", ANALYSED)
def test_analyse_gives_its_declared_metrics(system: str) -> None:
    found = ANALYSED[system]
    expect_as_declared("analyse", found, [methods.analyse(each) for each in found])


@pytest.mark.parametrize("system", SIMULATED)
def test_simulate_gives_its_declared_metrics(system: str) -> None:
    found = SIMULATED[system]
    expect_as_declared("simulate", found, [methods.simulate(each) for each in found])


def test_occasional_metrics_are_given_by_some_system() -> None:
    buffers = {
        f"network__switch__{level}__{key}": value
        for level in ("leaf", "spine", "core")
        for key, value in (("model", "shared-memory"), ("buffer", "4 MB"))
    }
    three_levels = {"network__pods": 2, "network__cores": 1, "hosts__placement": "spread"}
    cores = small(**TCP | PULL | buffers | three_levels)
    pausing = rack(network__switch__tor__model="software", network__switch__tor__pause_at=10)
    came = [given(methods.simulate(each)) for each in [*SIMULATED["rack"], cores, pausing]]
    assert set.union(*came) >= SOMETIMES


def test_a_system_without_closed_form_has_a_warning_and_no_metrics() -> None:
    for system in ("pull over TCP", "flows over RoCE", "flows"):
        found = methods.analyse(SIMULATED[system][0])
        assert found.metrics == {}
        (warning,) = found.warnings
        assert "no closed form" in warning


async def visited(control: Control, *more: Any) -> None:
    """A stranger calls a method that the run control does not have; then the run goes on."""

    def call() -> None:
        with grpc.insecure_channel(control.address) as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary("/no/such")(b"", timeout=60)

    await asyncio.to_thread(call)
    await RUNNING(control, *more)


@pytest.mark.parametrize("protocol", ["shift", "daqpipe"])
@pytest.mark.process
def test_measure_gives_its_declared_metrics(protocol: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(live, "_until_running", visited)
    to_file = {"measure__sink": "file", "measure__sink_files": str(tmp_path)}
    if protocol == "shift":
        to_file |= {"building__pace": "builder"} | LIVE_CARD
    over_tcp = {"measure__transport": "tcp"}
    runs = [tiny_daqpipe(building__protocol=protocol, **more) for more in (over_tcp, to_file)]
    expect_as_declared("measure", runs, [live.measure(each) for each in runs])


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
@pytest.mark.process
def test_a_laboratory_gives_its_declared_metrics(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(live, "_until_running", visited)
    monkeypatch.setattr(validity, "KINDS", ())
    small = {"readout.units": 2, "builders.units": 1, "measure.duration": "2 s"}
    shallow = {"network.switch.tor.model": "drop-tail", "network.switch.tor.queue_packets": 4}
    to_file = {"measure.sink": "file", "measure.sink_files": str(tmp_path)}
    runs = [load("lab-rack", small | more) for more in ({}, shallow | to_file)]
    results = [live.measure(each) for each in runs]
    came = set.union(*map(given, results))
    expected = declared("measure", runs[0].parts)
    assert came - expected == set()
    assert expected - came <= {"host_drops.*", "host_pressure"}  # where there is something to tell


def test_every_metric_is_declared_once_with_its_text_label_and_methods() -> None:
    for part in (METRICS, COST):
        names = [metric.name for metric in part]
        assert sorted(set(names)) == sorted(names)
        for metric in part:
            assert metric.label == metric.label.strip() != ""
            assert metric.meaning.endswith(".")
            assert metric.givers(), f"no method gives {metric.name}"
    # One with further parts in its name tells them after its label.
    labels = [metric.label_of(metric.name.replace("*", "x")) for metric in METRICS]
    assert sorted(set(labels)) == sorted(labels)
    for method in METHODS:
        of_metrics = [metric.given_by(method) for metric in METRICS]
        assert any(of_metrics)
        if method != "simulate":  # which takes all
            assert all(TAKES[method] & each == each for each in of_metrics)


SUFFIXES = {"_s": "s", "_hz": "Hz", "_bps": "bit/s", "_bytes": "B", "_share": "1"}


@pytest.mark.parametrize("metric", [*METRICS, *COST], ids=lambda metric: metric.name)
def test_the_unit_is_that_of_the_name(metric: Metric) -> None:
    root = metric.name.partition(".")[0]
    for suffix, unit in SUFFIXES.items():
        if root.endswith(suffix) and root != "packet_hops_per_cpu_s":
            assert metric.unit == unit
            return
    assert metric.unit not in {"s", "Hz", "bit/s", "B"}


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("buffer_peak_bytes.tor", "peak occupancy of the top-of-rack switch"),
        ("link_utilisation.access.3.down", "link utilisation, access 3 down"),
        ("timeouts_by_cause.whole_window", "retransmission timeouts, whole window"),
    ],
)
def test_a_label_contains_the_free_part_of_the_name(path: str, label: str) -> None:
    metric = find_declaration(path)
    assert metric is not None
    assert metric.label_of(path) == label


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (47_500_000, "B", "47.5 MB"),
        (-1_190_000, "B", "-1.19 MB"),
        (12_000.0, "Hz", "12 kHz"),
        (480e9, "bit/s", "480 Gb/s"),
        (0.0016, "s", "1.6 ms"),
        (0, "s", "0 s"),
        (0.637, "1", "63.7%"),
        (0.0, "1", "0.0%"),
        (0.00034, "1", "0.034%"),
        (1_234_567, "packets", "1,234,567"),
        (0.25, "cores", "0.25"),
    ],
)
def test_a_number_is_shown_as_its_unit_asks(value: float, unit: str, text: str) -> None:
    assert with_unit(value, unit) == text


def test_every_choice_is_a_part() -> None:
    chosen = [
        *get_args(Building.model_fields["protocol"].annotation),
        *get_args(Kind.model_fields["kind"].annotation),
        *get_args(Shape.model_fields["technology"].annotation),
    ]
    names = {"FLOWS" if choice == "none" else choice.upper() for choice in chosen}
    assert names <= Parts.__members__.keys()

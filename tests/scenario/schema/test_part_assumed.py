"""Defaults that are guesses at a system, and where they are listed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario import Scenario, presets, to_toml
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.part import Guess
from daqloom.study.methods import methods
from support.command import printed, record

RACK = """
[event]
size = "400 kB"
rate = "2 kHz"
arrivals = "deterministic"
[building]
protocol = "pull"
concurrent_events = 8
request_size = "100 B"
[readout]
units = 4
[builders]
units = 4
[network]
technology = "ethernet"
[network.links]
source = { rate = "10 Gb/s", delay = "1 us" }
uplink = { delay = "1 us" }
access = { rate = "10 Gb/s", delay = "1 us" }
"""


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    path = tmp_path / "rack.toml"
    path.write_text(RACK)
    return path


def test_a_default_is_assumed_until_the_key_is_given(rack: Path) -> None:
    scenario = load(rack)
    assert scenario.assumptions() == {"network.links.uplink.rate": "800 Gb/s"}
    assert load(rack, ["network.links.uplink.rate=800 Gb/s"]).assumptions() == {}
    assert override(scenario, ["event.size=1 MB"]).assumptions() == scenario.assumptions()


@pytest.mark.parametrize("name", presets())
def test_a_shipped_scenario_assumes_nothing(name: str) -> None:
    assert load(name).assumptions() == {}


JITTER = {"hosts.jitter": "4.0"}
CELLS = {"buffer": "32 MB", "cell_size": "256 B", "cell_metadata": "64 B"}
DAQPIPE = {"building.mode": "pull", "building.credits": "4", "building.parallel_sends": "4"}
FLOW = {"flows.b.size": "64 KiB", "flows.b.outstanding": "128"}


def switch(level: str, **keys: object) -> dict[str, object]:
    return {f"network.switch.{level}.{key}": value for key, value in keys.items()}


@pytest.mark.parametrize(
    ("name", "change", "assumed"),
    [
        ("small-rack", {"event.size_distribution": "gamma"}, {"event.size_spread": "0.2"}),
        ("small-rack", {"event.size_distribution": "poisson"}, {"event.size_quantum": "10 kB"}),
        (
            "small-rack",
            switch("tor", model="drop-tail"),
            switch("tor", queue_packets="1000") | JITTER,
        ),
        ("small-rack", switch("tor", model="qfx5120-48y"), switch("tor", alpha="1.0") | JITTER),
        (
            "small-rack",
            switch("core", model="shared-memory", alpha=1.0),
            switch("core", **CELLS) | JITTER,
        ),
        ("small-rack", {"transport.congestion": "static"}, {"transport.static_window": "64 KiB"}),
        ("laptop", {"building.change": "window"}, {"building.window": "1 ms"}),
        ("laptop", {"hosts.memory_rate": "100 Gb/s"}, {"hosts.memory_passes": "2"}),
        ("laptop", {"building.protocol": "daqpipe"}, DAQPIPE),
        ("ib-write-lat", {"flows.b.source": 0, "flows.b.destination": 1}, FLOW),
    ],
)
def test_a_choice_brings_the_guesses_that_go_with_it(name, change, assumed) -> None:
    assert load(name, change).assumptions() == assumed


def test_a_switch_that_is_named_gives_its_numbers(tmp_path: Path) -> None:
    fabric = "leaves = 1\nspines = 1\nspine_links = 1\nhosts_per_leaf = 4\n"
    path = tmp_path / "fabric.toml"
    path.write_text(f'[network]\ntechnology = "infiniband"\n{fabric}')
    starts = ("network.switch.", "network.links.")
    of_fabric = {k: v for k, v in load(path).assumptions().items() if k.startswith(starts)}
    common = {"network.links.delay": "170 ns", "network.switch.crossbar_speedup": "2"}
    product = {"network.switch.latency": "130 ns", "network.switch.buffer": "64 KiB"}
    product |= {"network.switch.radix": "40", "network.links.rate": "200 Gb/s"}
    assert of_fabric == common | product
    named = load(path, ["network.switch.model=sb7700"]).assumptions()
    assert of_fabric.keys() & named.keys() == common.keys()


def test_every_result_lists_the_assumed_defaults(rack: Path) -> None:
    brief = {"run.duration": "5 ms", "run.warmup": "1 ms"}
    for result in (methods.analyse(load(rack)), methods.simulate(load(rack, brief))):
        assert result.assumed == {"network.links.uplink.rate": "800 Gb/s"}
        assert Result.from_json(result.to_json()).assumed == result.assumed
    assert "assumed" not in methods.analyse(load("small-rack")).to_dict()


def test_defaults_in_a_shown_scenario_follow_its_other_keys(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    shown = printed("show", "small-rack", "--set", "network.switch.tor.model=infinite")
    file.write_text(shown)
    assert "\n# jitter = 0.0  # follows other keys\n" in shown
    change = ["network.switch.tor.model=qfx5120-48y", "network.links.access.rate=1 Gb/s"]
    assert load(file, change).assumptions() == load("small-rack", change).assumptions()
    assert load(file, change).hosts.jitter == load("small-rack", change).hosts.jitter == 4.0


def test_the_command_line_lists_the_assumed_defaults(rack: Path) -> None:
    shown = printed("show", rack)
    start = "# Assumed, as the scenario does not give:\n#   network.links.uplink.rate = 800 Gb/s\n"
    assert shown.startswith(start)
    assert '\n# rate = "800 Gb/s"  # assumed\n' in shown
    again = rack.with_name("again.toml")
    again.write_text(shown)
    assert to_toml(load(again)) == to_toml(load(rack))
    assert load(again).assumptions() == load(rack).assumptions()
    assert "\nassumed: network.links.uplink.rate = 800 Gb/s\n" in printed("analyse", rack)
    assert record("analyse", rack)["assumed"] == {"network.links.uplink.rate": "800 Gb/s"}
    assert "ssumed" not in printed("show", "small-rack")
    head, *lines = printed("show", rack).partition("\n\n")[0].splitlines()[2:]
    assert head.startswith("# From the other keys, for enough events of each builder")
    run = load(rack).run
    assert lines == [
        f"#   run.duration = {TIME.format(run.duration)}",
        f"#   run.warmup = {TIME.format(run.warmup)}",
    ]


NEUTRAL = {
    # One is no multiplication.
    "network.links.uplink.count", "network.switch.core.cost", "network.switch.tor.cost",
    "network.switch.leaf.cost", "network.switch.spine.cost",
    "building.meps_per_phase",
    "building.phases_per_barrier", "building.phases_under_way", "network.core_links",
    "network.lanes.count",
    # A second is far above any latency of storage: only lost events reach it.
    "storage.timeout",
    # One at a time is what pacing by builder units means.
    "building.writers",
    # Ethernet's, InfiniBand's.
    "network.mtu", "transport.mtu", "network.switch.credit_update_size", "network.lanes.high_limit",
    "transport.retry_count", "transport.retry_spread",
    # Linux's.
    "transport.initial_window", "transport.receive_window", "transport.rto_min",
    "transport.rto_max", "transport.delayed_ack", "transport.ack_every", "transport.dctcp_g",
    # In effect without limit.
    "readout.buffer", "builders.buffer",
    # Size of the live event builder's own messages.
    "building.control_size",
    # Any seed will do.
    "faults.seed",
}  # fmt: skip


def unmarked_numbers(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for key, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if key not in ("run", "measure"):  # of a run, not of a system
                yield from unmarked_numbers(kind, f"{path}{key}.")
        elif isinstance(field.default, int | float) and not isinstance(field.default, bool):
            marked = any(isinstance(item, Guess) for item in field.metadata)
            if field.default and not marked:
                yield path + key


def test_every_other_number_that_is_not_zero_is_neutral_for_a_reason() -> None:
    assert set(unmarked_numbers(Scenario)) == NEUTRAL

"""Meaning of a scenario: presets, switch products, checks across keys, identity."""

import pickle
from typing import Annotated

import pytest
from hypothesis import given
from pydantic import PlainSerializer

from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario, ScenarioError, presets, to_toml
from daqloom.scenario.schema.parts import Parts
from support.strategies import scenarios

PRESETS = ("atlas-hllhc", "atlas-lab", "incast-rack", "lab-incast", "lab-pair", "lab-rack")
PRESETS += ("laptop-pull", "lossless-switch-all-to-one", "small-rack")
"""Racks."""


def test_the_shipped_scenarios_are_found_by_name_and_have_a_title():
    shipped = {name: system for name in presets() if Parts.INCAST in (system := load(name)).parts}
    assert tuple(name for name, it in shipped.items() if isinstance(it, Scenario)) == PRESETS
    for name, scenario in shipped.items():
        assert scenario.name == name
        assert scenario.title


def test_a_trace_without_meaning_and_a_share_out_of_range_are_refused():
    reason = r'event.trace means nothing with event.arrivals = "deterministic"; '
    with pytest.raises(ScenarioError, match=reason):
        load("small-rack", {"event.trace": "nobody.txt", "event.arrivals": "deterministic"})
    with pytest.raises(ScenarioError, match=r"dctcp_g = .* is too large; it must be at most 1"):
        load("small-rack", {"transport.congestion": "dctcp", "transport.dctcp_g": "120 %"})


def test_the_shipped_laboratory_carries_the_figures_of_the_paper():
    lab = load("atlas-lab")
    assert (lab.readout.units, lab.builders.units, lab.building.concurrent_events) == (48, 32, 32)
    assert (lab.network.links.uplink.rate, lab.network.links.access.rate) == (800e9, 25e9)
    assert (lab.event.size, lab.event.rate, lab.event.arrivals) == (5_000_000, 12e3, "poisson")
    assert lab.network.switch.core.model == lab.network.switch.tor.model == "infinite"
    assert (lab.run.duration, lab.run.warmup) == (5.0, 1.0)
    lab, final = load("atlas-lab"), load("atlas-hllhc")
    assert (final.readout.units, final.network.links.source.rate) == (600, 200e9)
    same = override(final, ["readout.units=48", "network.links.source.rate=100 Gb/s"])
    assert same.hash() == lab.hash()


def test_all_to_one_sends_9790_packets_over_110_flows():
    scenario = load("lossless-switch-all-to-one")
    fragment = scenario.event.size / scenario.readout.units
    assert fragment == 128_800
    packets_per_flow = -(-fragment // scenario.mss)
    assert packets_per_flow * scenario.readout.units == 9790
    assert scenario.transport.static_window == packets_per_flow * scenario.mss
    assert scenario.network.switch.tor.queue_packets == 14_000
    assert scenario.network.switch.tor.pace == 780_000_000


def test_another_model_drops_the_numbers_of_the_one_it_replaces_on_every_level():
    for model in ("infinite", "qfx5120-48y"):
        changed = load("lossless-switch-all-to-all", {"network.switch.spine.model": model})
        assert changed.network.switch.spine.model == model
        assert changed.network.switch.spine.pace == 0
    keys = ["network.switch.tor.model=qfx5120-48y", "network.switch.tor.buffer=60 MB"]
    shallow = load("atlas-lab", keys)
    assert override(shallow, ["network.switch.tor.alpha=2"]).network.switch.tor.buffer == 60_000_000
    marked = override(shallow, ["network.switch.tor.ecn_threshold=100 kB"])
    deep = override(marked, ["network.switch.tor.model=acx7100-48l"]).network.switch.tor
    assert (deep.buffer, deep.ecn_threshold) == (8_000_000_000, 100_000)
    assert override(shallow, ["network.switch.tor.model=infinite"]).network.switch.tor.buffer == 0


def test_the_papers_switches_have_its_numbers():
    tor = load("atlas-lab", ["network.switch.tor.model=qfx5120-48y"]).network.switch.tor
    assert tor.architecture == "shared-memory"
    assert (tor.buffer, tor.dedicated, tor.shared) == (32_000_000, 5_000_000, 27_000_000)
    assert (tor.cell_size, tor.cell_metadata, tor.cost) == (256, 64, 1.0)
    tor = load("atlas-lab", ["network.switch.tor.model=acx7100-48l"]).network.switch.tor
    assert (tor.architecture, tor.buffer, tor.cost) == ("voq", 8_000_000_000, 2.5)
    keys = ["network.switch.tor.buffer=60 MB", "network.switch.tor.model=qfx5120-48y"]
    tor = load("atlas-lab", keys).network.switch.tor
    assert (tor.dedicated, tor.shared) == (5_000_000, 55_000_000)


def test_the_segment_leaves_room_for_headers():
    assert load("atlas-lab").mss == 1448
    assert load("atlas-lab", ["transport.timestamps=false"]).mss == 1460
    assert load("atlas-lab", ["network.mtu=9000 B"]).mss == 8948


def refuse(overrides, reason):
    with pytest.raises(ScenarioError, match=reason) as caught:
        load("atlas-lab", overrides)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["builders.units=0"], "builders.units = 0; pull requires a number of units"),
        (["readout.units=0"], "readout.units = 0; pull requires a number of units"),
        (["event.rate=0 Hz"], "pull requires a rate"),
        (["event.size=0 B"], "is zero"),
        (["network.links.access.rate=0 b/s"], "is zero"),
        (["network.links.uplink.count=0"], "at least 1"),
        (["run.warmup=5 s"], "leaves no time to count of run.duration"),
        (["run.duration=0 s"], "is zero"),
        (["event.size=47 B"], "less than one byte for each of readout.units = 48"),
        (["event.share=[1, 2]"], "has 2 weights; expected one for each of readout.units = 48"),
        (["event.share=[0]"], "not a positive number"),
        (["event.share=uneven"], 'expected "equal" or a list'),
        (["event.size_distribution=histogram"], "requires a file in size_histogram"),
        (["event.arrivals=trace"], "requires a file in trace"),
        (["event.size_distribution=gaussian", "event.size_spread=0.5"], "at most 1/3"),
        (["event.size_distribution=poisson", "event.size_quantum=6 MB"], "larger than size"),
        (["event.arrivals=lhc", "event.rate=40 MHz"], "more than the 3.15152e\\+07 Hz"),
        (["readout.response.kind=uniform", "readout.response.spread=1 s"], "cannot be negative"),
        (
            ['builders.processing=[{kind="uniform", spread="1 s"}]'],
            r"builders.processing.0: .*cannot be negative",
        ),
        (["network.mtu=100 B"], '= "100 B" is too small; it must be at least 576 B'),
        (["network.mtu=100 kB"], "at most 65 kB"),
        (
            ["transport.congestion=static", "transport.static_window=1 kB"],
            "smaller than one segment of 1448 B",
        ),
        (["transport.receive_window=1 kB"], "smaller than one segment"),
        (["transport.tso_burst=1 kB"], "smaller than one segment"),
        (["transport.rto_min=200 s"], "rto_min is larger than rto_max"),
        (["transport.congestion=dctcp"], "set network.switch.tor.ecn_threshold"),
        (["transport.congestion=bbr"], "expected 'newreno', 'cubic', 'dctcp' or 'static'"),
        (["readout.units=100000"], "at most 50000"),
        (["event.size_distribution=gamma", "event.size_spread=0"], "size_spread is zero"),
        (["event.arrivals=lhc", "event.lhc.bunch_spacing=1 ms"], "at most 1 us"),
        (["run.seed=-1"], "at least 0"),
        (["run.seed=1.5"], "not a whole number"),
        (["transport.rack=yes"], "neither true nor false"),
        (["builders.processing=1 ms"], "not a list"),
    ],
)
def test_a_contradictory_scenario_is_refused_in_one_sentence(overrides, reason):
    refuse(overrides, reason)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            "tor: model=qfx5120-48y, ports=10",
            "network.switch.tor.ports = 10 is less than the 33 ports",
        ),
        (
            "core: model=qfx5120-48y, ports=48",
            "network.switch.core.ports = 48 is less than the 49 ports",
        ),
        (
            "tor: model=shared-memory, buffer=50 kB, dedicated=50 kB",
            "is too small for a full frame",
        ),
        # five whole cells of 256 B, and metadata
        ("tor: model=shared-memory, port_limit=1518 B", "is too small for a full frame"),
        ("tor: buffer=60 MB", 'is not a key of model = "infinite"'),
        ("tor: model=voq, alpha=1", 'is not a key of model = "voq"'),
        ("tor: model=voq, buffer=0 B", "buffer is zero"),
        ("tor: model=voq, buffer=1 kB", "smaller than one frame of 1518 B"),
        ("tor: model=voq, port_limit=1 kB", "smaller than one frame"),
        (
            "tor: model=qfx5120-48y, buffer=4 MB",
            "dedicated = 5 MB is more than the whole buffer of 4 MB",
        ),
        (
            "tor: model=shared-memory, cell_size=64 MB",
            "cell_size = 64 MB is larger than the buffer of 32 MB",
        ),
        (
            "tor: model=shared-memory, cell_metadata=256 B",
            "leaves no space for data in a cell of 256 B",
        ),
        ("tor: model=drop-tail, queue_packets=0", "has no limit"),
        ("tor: model=shared-memory, alpha=0", "must be more than 0"),
        ("tor: model=shared-memory, alpha=nan", "alpha"),
        ("tor: model=shared-memory, alpha=inf", "alpha"),
    ],
)
def test_a_contradictory_switch_is_refused_in_one_sentence(keys, reason):
    level, _, changes = keys.partition(": ")
    refuse([f"network.switch.{level}.{change}" for change in changes.split(", ")], reason)


def test_a_histogram_and_a_trace_set_the_means(tmp_path):
    (tmp_path / "sizes.txt").write_text("1000 1\n4000 2\n")
    event = '[event]\nsize_distribution = "histogram"\nsize_histogram = "sizes.txt"\n'
    (tmp_path / "s.toml").write_text(event)
    scenario = load(tmp_path / "s.toml")
    assert scenario.event.size == 3000
    assert [list(column) for column in scenario.event.histogram] == [[1000, 4000], [1, 2]]
    (tmp_path / "arrivals.txt").write_text("0.1\n0.2\n0.3\n0.5\n")
    trace = {"event.arrivals": "trace", "event.trace": str(tmp_path / "arrivals.txt")}
    scenario = load("small-rack", trace)
    assert scenario.event.rate == 8.0
    assert list(scenario.event.arrival_times) == [0.1, 0.2, 0.3, 0.5]


def test_the_hash_is_of_all_that_bears_on_a_result_not_of_where_files_are(tmp_path):
    lab = load("atlas-lab")
    assert lab.hash() == load("atlas-lab").hash()
    assert lab.hash() == override(lab, ["title=other", "name=other", "run.seed=7"]).hash()
    assert lab.hash() == override(lab, ["event.size=5000 kB"]).hash()
    assert lab.hash() != override(lab, ["event.size=5.001 MB"]).hash()
    assert lab.hash() != override(lab, ["transport.rack=true", "run.warmup=2 s"]).hash()

    def scenario(folder: str, content: str) -> Scenario:
        file = tmp_path / folder / "arrivals.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
        return load("small-rack", {"event.arrivals": "trace", "event.trace": str(file)})

    assert scenario("a", "0.1\n0.2\n").hash() == scenario("b", "0.1\n2e-1\n").hash()
    assert scenario("a", "0.1\n0.2\n").hash() != scenario("b", "0.15\n0.2\n").hash()


@given(scenarios())
def test_a_valid_system_survives_being_shown_pickled_and_overridden(tmp_path_factory, scenario):
    path = tmp_path_factory.getbasetemp() / "shown.toml"
    path.write_text(to_toml(scenario))
    shown, whole = load(path), scenario.hash()
    assert shown.hash() == whole
    assert shown.run == scenario.run
    assert pickle.loads(pickle.dumps(scenario)).hash() == whole
    assert override(scenario, ["run.warmup=5 ms"]).run.seed == scenario.run.seed


@pytest.mark.parametrize("name", presets())
def test_shown_scenarios_load_as_the_same_system(tmp_path, name):
    path = tmp_path / f"{name}.toml"
    path.write_text(to_toml(load(name)))
    assert load(path) == load(name)
    assert load(path).hash() == load(name).hash()
    assert to_toml(load(path)) == path.read_text()


def test_a_scenario_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        load("small-rack").event.size = 3


def test_ctrl_c_while_a_scenario_is_written_down_is_ctrl_c() -> None:
    def interrupted(_: object) -> str:
        raise KeyboardInterrupt

    class Interrupted(Scenario):
        title: Annotated[str, PlainSerializer(interrupted)] = ""

    with pytest.raises(KeyboardInterrupt):
        Interrupted.model_construct().model_dump(mode="json", include={"title"})


@pytest.mark.parametrize(("written", "share"), [("20 %", 0.2), ("7.5%", 0.075), ("0.2", 0.2)])
def test_a_share_may_be_written_in_per_cent(written, share):
    spread = {"event.size_distribution": "gaussian", "event.size_spread": written}
    gaussian = load("small-rack", spread)
    assert gaussian.event.size_spread == share
    assert to_toml(gaussian) == to_toml(override(gaussian, {"event.size_spread": share}))

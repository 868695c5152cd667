"""Engine configurations by the names of their fields."""

from enum import Enum

import pytest

from daqloom import _engine
from daqloom.configuration.settings import fields_of, settings
from daqloom.scenario.schema.building import Building
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.lanes import Lanes
from daqloom.scenario.schema.part import Part
from daqloom.scenario.schema.scheduling import Scheduling
from daqloom.scenario.schema.switches import InfinibandSwitch, PacketBuffer
from daqloom.scenario.schema.transport import Transport
from daqloom.scenario.schema.units import Readout


def test_a_field_has_the_value_of_its_name_and_unknown_names_are_refused() -> None:
    retried = Transport(retry_timeout="2 s", retry_count=3)
    more = {"acknowledge": False, "retry_spread": 1.5, "seed": 7}
    rdma = settings(_engine.RdmaConfig, retried, **more)
    assert (rdma.retry_timeout_s, rdma.retry_count) == (2.0, 3)
    assert (rdma.acknowledge, rdma.retry_spread, rdma.seed) == (False, 1.5, 7)
    with pytest.raises(TypeError, match="RdmaConfig has no field retries"):
        settings(_engine.RdmaConfig, Transport(), acknowledge=True, seed=1, retries=3)
    with pytest.raises(TypeError, match=r"RdmaConfig\.acknowledge has no value"):
        settings(_engine.RdmaConfig, Transport(), seed=1)


def test_words_and_distributions_become_values_of_the_engine() -> None:
    response = Distribution(kind="gaussian", mean="3 us", spread="1 us")
    rules = settings(
        _engine.PullRules,
        Building(assignment="least-busy"),
        Readout(response=response),
        arrivals=_engine.Arrivals(),
        event_size=_engine.EventSize(),
        share=(),
        processing=[],
        storage=_engine.StorageRules(),
    )
    assert rules.assignment is _engine.Assignment.least_busy
    assert rules.response.kind is _engine.DelayKind.gaussian
    assert (rules.response.mean_s, rules.response.spread_s) == (3e-6, 1e-6)


DIFFERENT: dict[tuple[type, type[Part]], set[str]] = {
    (_engine.TcpConfig, Transport): {"static_window"},
    (_engine.RdmaConfig, Transport): set(),
    (_engine.InfinibandConfig, InfinibandSwitch): {"crossbar_speedup"},
    (_engine.LaneArbitration, Lanes): set(),
    (_engine.Schedule, Scheduling): {"weights"},
    (_engine.SwitchConfig, PacketBuffer): set(),
    (_engine.SoftwareSwitchConfig, PacketBuffer): set(),
    (_engine.ShiftRules, Building): set(),
    (_engine.DaqpipeRules, Building): {"credits", "parallel_sends"},
    (_engine.PullRules, Building): set(),
}
"""Engine configurations, tables of a scenario that set them, and the fields with different
defaults: a scenario guesses at a usual system, the engine has the simplest."""


@pytest.mark.parametrize(("kind", "table"), DIFFERENT)
def test_defaults_of_the_engine_are_those_of_a_scenario(kind: type, table: type[Part]) -> None:
    """A test holds them equal: to read them from the engine would slow every start."""

    def default(key: str) -> object:
        return table.model_fields[key].get_default(call_default_factory=True)

    def plain(value: object) -> object:
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, str):
            return value.replace("-", "_")
        return pytest.approx(value) if isinstance(value, float) else value

    config = kind()
    shared = {name: key for name, key in fields_of(kind).items() if key in table.model_fields}
    assert shared
    different = {
        name for name, key in shared.items() if plain(getattr(config, name)) != plain(default(key))
    }
    assert different == DIFFERENT[kind, table]

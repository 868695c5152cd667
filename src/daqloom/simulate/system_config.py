"""Engine configuration common to all simulated systems: network, transport, hosts, flows, run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from daqloom import _engine
from daqloom.configuration.rules import rules_of
from daqloom.configuration.settings import fields_of, settings
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.schema.event import Event
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.ethernet import ethernet_config
from daqloom.simulate.faults import (
    engine_tables,
    ethernet_changes,
    fault_fields,
    infiniband_changes,
    later_tables,
)
from daqloom.simulate.flow_traffic import flows_of
from daqloom.simulate.infiniband import infiniband_config
from daqloom.simulate.transports import rdma_config, tcp_config

Config = TypeVar("Config")


def no_frames(captures: Mapping[str, Path]) -> None:
    """Raise ValueError if captures of frames are requested."""
    if captures:
        raise ValueError(
            f"frames of {next(iter(captures))} cannot be recorded: pcapng files are written of "
            "pull building over TCP alone"
        )


def system_config(
    kind: type[Config],
    scenario: Scenario,
    system: FabricSystem,
    seed: int,
    **own: object,
) -> Config:
    """Return the configuration of a simulated system, as a class of the engine. `own`: fields that
    only some systems have, except rules of protocols and faults of units."""
    tables = later_tables(scenario, system)
    reroutings = engine_tables(tables, system.fabric)
    network: _engine.EthernetConfig | _engine.InfinibandConfig
    if scenario.network.technology == "ethernet":
        changes = ethernet_changes(scenario, system)
        network = ethernet_config(scenario, system, seed, changes, reroutings)
    else:
        link_changes = infiniband_changes(scenario, system)
        network = infiniband_config(system, seed, link_changes, reroutings)
    transport: _engine.TcpConfig | _engine.RdmaConfig
    if scenario.transport.kind == "tcp":
        transport = tcp_config(scenario)
    else:
        transport = rdma_config(scenario.transport, seed)
    flow_hosts, flows = flows_of(scenario, system)
    names = fields_of(kind)
    shared = fault_fields(scenario, system, tables) | rules_of(scenario, system.barrier_groups)
    own |= {name: value for name, value in shared.items() if name in names}
    return settings(
        kind,
        scenario.hosts,
        scenario.transport,
        scenario.run,
        network=network,
        transport=transport,
        path=settings(_engine.PathConfig, scenario.hosts),
        control_bytes=scenario.building.control_size,
        flow_hosts=flow_hosts,
        flows=flows,
        seed=seed,
        **own,
    )


def interval_s(event: Event) -> float:
    """Return the time between two MFPs of a source (s); 0: as fast as they are consumed."""
    return event.packing / event.rate if event.rate else 0.0

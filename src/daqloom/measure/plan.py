"""Plan of a measurement: programs to start and their hosts, faults, and needs of the machine."""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from daqloom.configuration.rules import run_plan
from daqloom.control.calls.connection import read_certificates
from daqloom.control.control import Control
from daqloom.control.persistence.store import Store
from daqloom.control.plan import Plan
from daqloom.control.protocol.messages import MOST_ARRIVALS
from daqloom.control.publication import Publication
from daqloom.control.record.record import About, Record
from daqloom.control.run_log import RunEvent
from daqloom.control.steering import SteeringOptions
from daqloom.deployment.scenarios import override
from daqloom.machine.doctor import Needs
from daqloom.machine.launch import ByHand, Launcher, Local, Mpirun, Slurm, Ssh, mpi_of
from daqloom.machine.open_files import check_open_files, files_of_a_control
from daqloom.measure.check import check_measurable
from daqloom.measure.configure import check_live, files_of_a_unit, machines, places, slots_of_run
from daqloom.measure.fault_plan import UnitOutage, unit_outages
from daqloom.measure.flows import Flows, check_flows
from daqloom.measure.programs import Programs
from daqloom.measure.storage import Storage, check_storage
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

FINISH_S = 60.0
"""Time limit for units to write the files of a recording (s)."""
TRACE_STAGES = 50_000
"""Limit on the stages that a unit keeps for a timeline; it keeps the last ones."""


@dataclass(frozen=True)
class MeasurementPlan:
    """Plan of one measurement: scenario, faults, launcher and recordings."""

    scenario: Scenario
    outages: list[UnitOutage]
    launcher: Launcher
    stages: int
    """Number of stages kept for each unit; 0: no timeline."""
    arrivals: int
    """Number of arrival times that the event manager keeps."""


def measurement_plan(
    scenario: Scenario, *, seed: int | None, launcher: Launcher | None, traced: bool, arrivals: bool
) -> MeasurementPlan:
    """Return the plan of a measurement; `seed` and `launcher`, if given, override the scenario's.
    Raises ScenarioError for a scenario that cannot be measured."""
    check_measurable(scenario)
    launch, protocol = scenario.measure.launch, scenario.building.protocol
    if launch == "by-hand" and launcher is None:
        raise ScenarioError(
            'measure.launch = "by-hand" starts no units, and units started by hand need the '
            "address and the token; `daqloom control SCENARIO --start` prints the command that "
            "starts units, and builds events with them"
        )
    if seed is not None and seed != scenario.run.seed:
        scenario = override(scenario, {"run.seed": seed})
    if traced and not scenario.protocol.has_phases:
        raise ScenarioError(
            f'building.protocol = "{protocol}" has no phases, which the timeline of a measurement '
            "shows; measure it without a timeline"
        )
    if arrivals and not scenario.protocol.has_arrivals:
        raise ScenarioError(
            f'building.protocol = "{protocol}" has no event manager at which events arrive; '
            'use "pull", or measure without arrivals'
        )
    check_programs(scenario)
    if scenario.storage.units:  # the senders of accepted events are the sink
        scenario = override(scenario, {"measure.sink": "user"})
    outages = unit_outages(scenario)
    if outages and launch == "mpirun" and launcher is None:
        raise ScenarioError(
            f"faults.injected.{outages[0].name}: mpirun ends all units when it loses one, as MPI "
            'cannot lose a rank; use measure.launch = "local" and another transport than "mpi", or '
            "simulate the system"
        )
    if outages and launch != "local" and launcher is None:
        raise ScenarioError(
            f"faults.injected.{outages[0].name}: a measurement breaks only processes that it has "
            f'started itself, and measure.launch = "{launch}" starts them elsewhere; use "local", '
            "or simulate the system"
        )
    return MeasurementPlan(
        scenario,
        outages,
        launcher or launcher_of(scenario),
        TRACE_STAGES if traced else 0,
        MOST_ARRIVALS if arrivals else 0,
    )


def plan_of(
    scenario: Scenario,
    *,
    launches: bool = True,
    store: Store | None = None,
    outlives: bool = False,
    counters: str = "",
    **traces: int,
) -> Plan:
    """Return the run control's plan; `launches`: whether it starts the units, unless the scenario
    has them started by hand; `traces`: see `Setup`. With a `store`, or with `outlives`, the run
    does not end with its run control, and `counters` is the folder of the counters of its units.
    Raises ScenarioError for a configuration that units would refuse."""
    check_live(scenario)
    measure = scenario.measure
    where = places(scenario)
    rules = run_plan(
        scenario,
        units=where.units,
        finish_timeout_s=FINISH_S if measure.sink == "file" else 0.0,
        stops_when_unwritable=measure.when_unwritable == "stop",
        launches=launches and measure.launch != "by-hand",
        slots=slots_of_run(scenario, where),
        takes_turns=scenario.protocol.has_phases,
        control_grace_s=measure.control_grace if store or outlives else 0.0,
    )
    document = scenario.model_dump(mode="json", exclude_unset=True)
    return Plan(
        run=store.about.run if store else new_run_name(),
        rules=rules,
        packing=scenario.packing,
        scenario=document,
        counters=counters,
        **traces,
    )


def new_run_name() -> str:
    """Return a name for a run, part of the names of its files and shared memory."""
    return secrets.token_hex(4)


def launcher_of(scenario: Scenario, address_file: str = "") -> Launcher:
    """Return the launcher that `measure.launch` selects; `address_file`: see `Local`. Raises
    ScenarioError for a host in `hosts.units` that is not among `measure.hosts`, and MeasureError
    if `measure.mpirun` is not a known mpirun."""
    measure = scenario.measure
    options = ("--certificates", measure.certificates) if measure.certificates else ()
    match measure.launch:
        case "local":
            return Local(options=options, address_file=address_file)
        case "ssh":
            return Ssh(_listed_hosts(scenario), options=options)
        case "slurm":
            table = scenario.hosts.units
            is_bound = any(unit.is_pinned for unit in table)
            return Slurm(options=options, hosts=machines(scenario, len(table)), is_bound=is_bound)
        case "mpirun":
            units = places(scenario).units
            hosts = _listed_hosts(scenario) if measure.hosts else [""] * units
            return Mpirun(hosts, mpi_of(measure.mpirun), options=options, program=measure.mpirun)
    return ByHand()


def _listed_hosts(scenario: Scenario) -> list[str]:
    """Return the machine of each unit: that of a placement table, else the hosts in turn."""
    hosts = scenario.measure.hosts
    by_name = {host.rpartition("@")[2]: host for host in hosts} | dict(
        zip(hosts, hosts, strict=True)
    )
    names = machines(scenario, places(scenario).units)
    for unit, name in enumerate(names):
        if name not in by_name:
            raise ScenarioError(
                f"hosts.units: unit {unit} is on {name}, which is not among measure.hosts; add it "
                "there, by the name that the table and the network have"
            )
    return [by_name[name] for name in names]


def control_of(
    scenario: Scenario,
    folder: Path,
    *,
    launcher: Launcher | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    on_count: Callable[[int], None] | None = None,
    socket_file: Path | None = None,
    trace_stages: int = 0,
    trace_arrivals: int = 0,
    record: Path | None = None,
    method: str = "control",
    steering: SteeringOptions | None = None,
    port: int | None = None,
    token: bytes = b"",
    store: Store | None = None,
    counters: str = "",
) -> Control:
    """Return the run control of a scenario, a context that is not yet entered. `launcher`: its own
    units have the given `token`, and find it at `port`. `record`: folder of the run, for the record
    of the command `method`; `store`, `counters`: see `plan_of`. Raises ScenarioError, MeasureError
    for limits of this machine, and OutputError if the folder cannot be written."""
    if method == "control":
        refuse_programs(scenario)
    measure = scenario.measure
    plan = plan_of(
        scenario,
        launches=not isinstance(launcher, ByHand),
        store=store,
        counters=counters,
        trace_stages=trace_stages,
        trace_arrivals=trace_arrivals,
    )
    units = plan.rules.units
    check_open_files(files_of_a_control(units), f"the run control of {units} units")
    if measure.launch == "local":
        check_open_files(files_of_a_unit(scenario), f"each of {units} units")
    own = measure.certificates
    about = About(
        method=method,
        scenario=scenario.name,
        began=datetime.now(UTC),
        units=units,
        packing=scenario.packing,
        protocol=scenario.building.protocol or "",
        transport=measure.transport,
    )
    return Control(
        plan,
        launcher or launcher_of(scenario, str(store.address_file) if store else ""),
        folder=folder,
        name=scenario.name,
        bind=measure.bind,
        port=measure.port if port is None else port,
        token=token,
        socket_file=socket_file,
        certificates=read_certificates(Path(own), "control") if own else None,
        on_event=on_event,
        on_count=on_count,
        publication=Publication(measure),
        record=Record(record, about, store.age_s if store else 0.0) if record else None,
        sink=measure.sink,
        steering=steering,
        store=store,
    )


def check_programs(scenario: Scenario) -> None:
    """Raise ScenarioError for flows or storage that cannot be measured."""
    check_flows(scenario)
    check_storage(scenario)


def programs_of(scenario: Scenario, launcher: Launcher) -> list[Programs]:
    """Return the programs beside the units, which are not yet started."""
    kinds = ((Flows, scenario.flows), (Storage, scenario.storage.units))
    return [kind(scenario, launcher) for kind, is_given in kinds if is_given]


def refuse_programs(scenario: Scenario) -> None:
    """Raise ScenarioError for what only `daqloom measure` runs beside units."""
    flow, storages = min(scenario.flows, default=""), scenario.storage.units
    if flow or storages:
        key = f"flows.{flow}" if flow else f"storage.units = {storages}"
        raise ScenarioError(
            f"{key}: a run control has only event building; use `daqloom measure`, or leave it out"
        )


def needs_of(scenario: Scenario) -> Needs:
    """Return the resources that a scenario needs. Raises ScenarioError if it cannot be measured."""
    measure, where = scenario.measure, places(scenario)
    by_machine = Counter(machines(scenario, where.units))
    fullest, hosts = max(by_machine.values()), len(by_machine)
    readouts, builders = (
        sum(unit >= 0 for unit in units) for units in (where.readouts, where.builders)
    )
    stream_bytes = min(scenario.readout.buffer, measure.stream_buffer)
    output_bytes = min(scenario.builders.buffer, measure.output_buffer)
    total_bytes = readouts * scenario.readout.streams * stream_bytes + builders * output_bytes
    return Needs(
        transport=measure.transport,
        open_files=max(files_of_a_control(where.units), files_of_a_unit(scenario)),
        units_here=fullest,
        memory_bytes=total_bytes * fullest // where.units,
        windows=scenario.building.change == "window",
        hosts=hosts,
        spinning=measure.waiting == "spinning",
        pinned=bool(measure.cores) or any(unit.is_pinned for unit in scenario.hosts.units),
    )

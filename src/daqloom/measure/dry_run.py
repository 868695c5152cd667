"""Dry run: the commands by which a measurement would change a machine, network and device."""

import shlex
from collections.abc import Iterator

from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab import kernel
from daqloom.lab.network import lab_network
from daqloom.measure.check import check_measurable
from daqloom.measure.configure import places
from daqloom.measure.plan import check_programs, launcher_of, plan_of, programs_of
from daqloom.scenario.schema.models import Scenario


def dry_run(scenario: Scenario) -> Iterator[str]:
    """Yield the commands in order, below headings that begin with #, without running them. Raises
    ScenarioError and MeasureError in the cases in which the run would."""
    measure = check_measurable(scenario).measure
    plan_of(scenario)
    check_programs(scenario)
    if measure.has_lab:
        yield from _laboratory(scenario)
    if measure.device:
        yield from DeviceUnderTest(scenario).effects()
    units = places(scenario).units
    listens = f"{measure.bind}:{measure.port or 'PORT'}"
    yield f"# {units} units, with the run's token on their standard input"
    for task in launcher_of(scenario).tasks(range(units), listens):
        yield shlex.join(task.command)
    for programs in programs_of(scenario, launcher_of(scenario)):
        yield f"# {programs.title}"
        yield from map(shlex.join, programs.commands().values())
    if measure.launch == "by-hand":
        yield "# measure.launch = by-hand: `daqloom control` prints the command that starts units"


def _laboratory(scenario: Scenario) -> Iterator[str]:
    network = lab_network(scenario)
    pids = [f"HOST{number}" for number in range(len(network.hosts))]
    yield f"# a network namespace for all switches, and one for each of {len(pids)} hosts"
    for name, value in network.settings.items():
        yield f"echo {value} > /proc/sys/net/{name}    # in each host"
    yield "# in that of the switches"
    yield from (f"ip {line}" for line in kernel.cables(network, pids))
    yield from (f"bridge {line}" for line in kernel.forwarding(network))
    yield from (f"tc {line}" for line in kernel.queues(network.queues, network.mtu_bytes))
    for place, (pid, host) in enumerate(zip(pids, network.hosts, strict=True)):
        yield f"# in that of {host.name} ({pid})"
        yield from (f"ip {line}" for line in kernel.own(network, host))
        own = network.queues_of_host(place)
        yield from (f"tc {line}" for line in kernel.queues(own, network.mtu_bytes))

"""What a measurement would do to a machine, a network and a device, line by line, without doing
it."""

import shlex
from collections.abc import Iterator

from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab import kernel
from daqloom.lab.network import lab_network
from daqloom.measure.configure import places
from daqloom.measure.run import launcher_of, of_a_fabric, plan_of
from daqloom.scenario.schema.models import Scenario


def dry_run(scenario: Scenario) -> Iterator[str]:
    """Yield each command in its order, below headings that begin with #. None is run, and no device
    is reached. Raises ScenarioError and MeasureError where the run would."""
    given = of_a_fabric(scenario).measure
    plan_of(scenario)
    if given.has_lab:
        yield from _laboratory(scenario)
    if given.device:
        yield from DeviceUnderTest(scenario).announced()
    units = places(scenario).units
    listens = f"{given.bind}:{given.port or 'PORT'}"
    yield f"# {units} units, with the run's token on their standard input"
    for task in launcher_of(scenario).tasks(range(units), listens):
        yield shlex.join(task.command)
    if given.launch == "by-hand":
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
    for pid, host in zip(pids, network.hosts, strict=True):
        yield f"# in that of {host.name} ({pid})"
        yield from (f"ip {line}" for line in kernel.own(network, host))
        own = [
            queue
            for cable in network.cables
            for queue, at in zip((cable.a, cable.b), cable.hosts, strict=True)
            if at >= 0 and network.hosts[at] is host
        ]
        yield from (f"tc {line}" for line in kernel.queues(own, network.mtu_bytes))

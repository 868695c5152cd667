"""The resources that a scenario needs on this machine."""

from daqloom.machine.doctor import Needs
from daqloom.machine.open_files import files_of_a_control
from daqloom.measure.configure import files_of_a_unit, places
from daqloom.scenario.schema.models import Scenario


def needs_of(scenario: Scenario) -> Needs:
    """Return the needs of a scenario. Raises ScenarioError for one that cannot be run live."""
    given, where = scenario.measure, places(scenario)
    hosts = len(set(given.hosts)) if given.launch == "ssh" else 1
    stream = min(scenario.readout.buffer, given.stream_buffer)
    readouts, builders = (
        sum(unit >= 0 for unit in units) for units in (where.readouts, where.builders)
    )
    total = readouts * scenario.readout.streams * stream + builders * min(
        scenario.builders.buffer, given.output_buffer
    )
    return Needs(
        transport=given.transport,
        open_files=max(files_of_a_control(where.units), files_of_a_unit(scenario)),
        units_here=-(-where.units // hosts),
        memory_bytes=-(-total // hosts),
        windows=scenario.building.change == "window",
        hosts=hosts,
        spinning=given.waiting == "spinning",
        pinned=bool(given.cores),
    )

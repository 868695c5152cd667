"""Program of a child process for the tasks of the console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from daqloom.base import lazy
from daqloom.console.studies import list_studies, study
from daqloom.deployment.fabric_system import fabric_system
from daqloom.scenario import dumps, files
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file import load as scenarios
from daqloom.tasks.program import Answer, Tasks, carry_out, report
from daqloom.tasks.systems import SYSTEM_TASKS, system_of

with lazy.imports():
    from daqloom.console import drawing
    from daqloom.topology.formats import load


def show(scenario: str) -> Answer:
    """Return the text of a scenario's file, by its name or path. Raises ScenarioError."""
    try:
        return {"toml": files.read_text(scenarios.find(scenario), scenarios.LARGEST_SCENARIO_BYTES)}
    except ValueError as error:
        raise ScenarioError(str(error)) from None


def topology(source: str, overrides: Sequence[str]) -> Answer:
    """Return the drawing of a scenario (name, path or text), of a shipped fabric, or of dumps at a
    path. Raises ScenarioError."""
    shipped, place = dumps.shipped_fabrics().get(source), Path(source)
    if "\n" not in source and (shipped or place.is_dir() or place.suffix not in ("", ".toml")):
        if not shipped and not files.is_allowed(place):
            raise ScenarioError(
                f"{source} is outside the folder of the server; give a path below it"
            )
        return drawing.draw(load.load_cabling(shipped or place)[0])
    cabled = fabric_system(system_of(source, overrides).scenario)
    drawn = drawing.draw(cabled.fabric)
    boxes = {box["name"]: index for index, box in enumerate(drawn["boxes"])}
    units = [boxes.get(cabled.fabric.hosts[host].name, -1) for host in cabled.hosts]
    return {**drawn, "units": units}


def simulate(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the result of a simulation without series, and the drawing with loads and states;
    print the progress."""
    system = system_of(scenario, overrides)
    result = system.simulate(progress=report, timeline=True)
    cabled, run = fabric_system(system.scenario), system.scenario.run
    counted_s = result.engine.get("virtual_s", run.duration)
    if system.scenario.network.technology == "ethernet":
        counted_s -= run.warmup
    drawn = drawing.with_run(drawing.draw(cabled.fabric), cabled, result, counted_s)
    return {"result": replace(result, series={}).to_dict(), "drawing": drawn}


TASKS: Tasks = {
    **SYSTEM_TASKS,
    **{each.__name__: each for each in (show, topology, simulate, list_studies, study)},
}

if __name__ == "__main__":
    carry_out(TASKS)

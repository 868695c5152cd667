"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from daqloom.base import lazy
from daqloom.cli import complete
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    import daqloom
    from daqloom import system as daqloom_system


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """Return an option with a value; its name is by default that of the parameter."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def flag(text: str, *names: str, **more: Any) -> Any:
    """Return an option without a value."""
    return typer.Option(*names, help=text, **more)


def argument(metavar: str, text: str, **more: Any) -> Any:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=text, **more)


def figures(text: str) -> Any:
    """Return the option --figure, which takes the files for a figure."""
    return option("FILE", f"{text}; may be repeated.", "--figure")


Name = Annotated[
    str,
    argument(
        "SCENARIO",
        "A name from `daqloom scenarios`, or the path of a TOML file.",
        autocompletion=complete.scenarios,
    ),
]
Set = Annotated[
    list[str] | None,
    option(
        "KEY=VALUE",
        "Override a key of the scenario; may be repeated. `daqloom show` prints all keys.",
        "--set",
        autocompletion=complete.keys,
    ),
]
Json = Annotated[bool, flag("Print the result as one JSON object and nothing else.", "--json")]
Quiet = Annotated[
    bool, flag("Print errors and the result only, no progress and no notes.", "-q", "--quiet")
]
JsonList = Annotated[bool, flag("Print the list as one JSON object and nothing else.", "--json")]
Show = Annotated[
    str | None,
    option(
        "METRIC",
        "Metric, such as event_rate_hz; by default that of the report.",
        "--show",
        autocompletion=complete.metrics,
    ),
]
Study = Annotated[
    Path,
    argument(
        "STUDY",
        "A TOML file, or a name from `daqloom study list`.",
        autocompletion=complete.studies,
    ),
]
Quick = Annotated[bool, flag("Use the quick form that the file describes.", "--quick")]
Store = Annotated[
    Path, option("DIR", "Folder of the results; any number of studies may share it.", "--store")
]
STORE = Path("daqloom-store")
Workers = Annotated[int, option("N", "Processes on this machine; 0: all cores.", min=0)]
IN_STORE = "computed results are in the store; the same command continues from there"


def load_with(
    scenario: str, set_: Sequence[str], options: Mapping[str, Any]
) -> daqloom_system.System:
    """Load a scenario with the overrides of --set and of options, which `options` maps from key to
    value. All are validated together, as they may depend on each other. Raises ScenarioError, which
    names the option if its value alone is invalid."""
    given = [f"{key}={value}" for key, value in options.items() if value is not None]
    try:
        return daqloom.load(scenario, [*set_, *given])
    except ScenarioError:
        with_options(daqloom.load(scenario), options)
        raise


def with_options(
    system: daqloom_system.System, options: Mapping[str, Any]
) -> daqloom_system.System:
    """Return `system` with the keys of given options changed, such as `run.seed` for --seed. Raises
    ScenarioError that names the option."""
    for key, value in options.items():
        if value is not None:
            try:
                system = system.with_overrides({key: value})
            except ScenarioError as error:
                raise ScenarioError(f"--{key.rpartition('.')[2]}: {error}") from None
    return system

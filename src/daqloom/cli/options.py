"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daqloom.cli import complete

if TYPE_CHECKING:
    from daqloom.system import System


Name = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A name from `daqloom scenarios`, or the path of a TOML file.",
        autocompletion=complete.scenarios,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the scenario; may be repeated. `daqloom show` prints all keys.",
        autocompletion=complete.keys,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object and nothing else.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", help="Print only errors and the result, no progress and no notes."
    ),
]
JsonList = Annotated[
    bool, typer.Option("--json", help="Print the list as one JSON object and nothing else.")
]
Show = Annotated[
    str | None,
    typer.Option(
        "--show",
        metavar="METRIC",
        help="Metric, such as event_rate_hz; by default that of the report.",
        autocompletion=complete.metrics,
    ),
]
Study = Annotated[
    Path,
    typer.Argument(
        metavar="STUDY",
        help="A TOML file, or a name from `daqloom study list`.",
        autocompletion=complete.studies,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Use the quick form that the file describes.")]
Store = Annotated[
    Path,
    typer.Option(
        "--store", metavar="DIR", help="Folder of the results; any number of studies may share it."
    ),
]
STORE = Path("daqloom-store")


def with_options(system: System, options: Mapping[str, Any]) -> System:
    """`system` with the keys that options stand for, such as `run.seed` for --seed, where they are
    given. Raises ScenarioError that names the option."""
    from daqloom.scenario.errors import ScenarioError

    for key, value in options.items():
        if value is not None:
            try:
                system = system.with_overrides({key: value})
            except ScenarioError as error:
                raise ScenarioError(f"--{key.rpartition('.')[2]}: {error}") from None
    return system

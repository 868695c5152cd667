"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Name = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A name from `daqloom scenarios`, or the path of a TOML file."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the scenario; may be repeated. `daqloom show` prints all keys.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object and nothing else.")
]
Study = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A TOML file, or a name from `daqloom study list`.")
]
Quick = Annotated[bool, typer.Option("--quick", help="The quick form that the file describes.")]
Store = Annotated[
    Path,
    typer.Option(
        "--store", metavar="DIR", help="Where results are kept; shared by any number of studies."
    ),
]
STORE = Path("daqloom-store")

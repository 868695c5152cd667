"""The command that prints the JSON Schema of a format of files."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

from daqloom.base import lazy
from daqloom.cli import complete
from daqloom.cli.options import argument, option

with lazy.imports():
    from daqloom.base import output as base_output
    from daqloom.terms import formats


def text_of(kind: str) -> str:
    """Return the JSON Schema of a format of files as text; it ends with a newline."""
    return dumps(formats.format_of(kind).schema(), indent=1, ensure_ascii=False) + "\n"


def schema(
    kind: Annotated[
        str,
        argument(
            "KIND", "scenario, study, switch, published or device.", autocompletion=complete.formats
        ),
    ] = "scenario",
    output: Annotated[
        Path | None, option("FILE", "Write the schema to a file instead of printing it.")
    ] = None,
) -> None:
    """Print the JSON Schema of scenarios, studies, switch files, device files or published numbers.

    An editor with a TOML language server (taplo, "Even Better TOML") completes and checks the keys
    of a file whose first line names the schema, by a URL or by a path relative to the file.
    Rules across keys and ranges of quantities are checked only by the commands that read the file.
    The schema of device files has the keys of the installed adapters.

    \b
    Examples:
      daqloom schema scenario --output schemas/scenario.json
      echo '#:schema schemas/scenario.json' > mine.toml
      daqloom show atlas-lab >> mine.toml
    """
    if output is None:
        print(text_of(kind), end="")
    else:
        base_output.write_text(output, text_of(kind))

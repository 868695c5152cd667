"""daqloom: an open laboratory for event-building networks.

>>> import daqloom
>>> daqloom.load("atlas-lab").analyse()  # doctest: +SKIP
>>> daqloom.load("atlas-lab", overrides=["event.size=2 MB"]).simulate(seed=1)  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from daqloom.base.lazy import names_of

if TYPE_CHECKING:
    from daqloom.report.study.report import write_report
    from daqloom.results.result import Result
    from daqloom.study.run.dataset import open_study
    from daqloom.study.run.sweep import sweep
    from daqloom.system import System

    __version__: str

# Vendor libraries that libfabric loads for network cards would otherwise install handlers for
# Ctrl-C and crashes, and write reports into the working folder. The engine loads libfabric, so the
# variables are set before it is imported.
for _kept_from in ("IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE"):
    os.environ.setdefault(_kept_from, "1")

__all__ = ["__version__", "load", "open_study", "sweep", "write_figure", "write_report"]


def load(
    scenario: str | PathLike[str], overrides: Iterable[str] | Mapping[str, Any] = ()
) -> System:
    """Read a scenario by name (`daqloom scenarios` lists them) or by the path of its TOML file.

    `overrides`, which replace values of the file, are `"dotted.path=value"` strings or a mapping
    from dotted path to value.

    Raises `daqloom.scenario.ScenarioError`, whose text is one readable sentence on the first
    mistake. Sentences on further mistakes are its notes.
    """
    from daqloom.deployment.scenarios import load
    from daqloom.system import System

    return System(load(scenario, overrides))


def write_figure(system: System, result: Result, path: str | PathLike[str]) -> None:
    """Write the figure of one result of `system`, like `--figure`; the file ending is the format.
    For a fabric, the figure contains the time series in the result. Simulate with `timeline=True`
    to include the activity of each node over time. Raises `daqloom.base.output.OutputError` with a
    readable sentence."""
    from pathlib import Path

    from daqloom.report.system.result_figure import write

    write(Path(path), system.scenario, result)


_ELSEWHERE = {
    "open_study": "daqloom.study.run.dataset",
    "sweep": "daqloom.study.run.sweep",
    "write_report": "daqloom.report.study.report",
}
"""Modules of functions that are imported on first use, as their dependencies load slowly."""

if not TYPE_CHECKING:  # else a type checker accepts any name of this module

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from daqloom.base.version import installed_version

            return installed_version()
        return names_of(__name__, _ELSEWHERE)(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

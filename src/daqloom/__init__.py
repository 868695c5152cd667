"""daqloom: an open laboratory for event-building networks.

>>> import daqloom
>>> daqloom.load("atlas-lab").analyse()  # doctest: +SKIP
>>> daqloom.load("atlas-lab", overrides=["event.size=2 MB"]).simulate(seed=1)  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import xarray

    from daqloom.result import Result
    from daqloom.study.dataset import open_study
    from daqloom.study.file import Method
    from daqloom.system import System

    __version__: str

# Libraries of network cards that libfabric loads would else take Ctrl-C and crashes for themselves,
# and leave a report in the working folder. Before anything loads the engine.
for _kept_from in ("IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE"):
    os.environ.setdefault(_kept_from, "1")

__all__ = ["__version__", "load", "open_study", "sweep", "write_figure", "write_report"]


def load(
    scenario: str | PathLike[str], overrides: Iterable[str] | Mapping[str, Any] = ()
) -> System:
    """Read a scenario by name (`daqloom scenarios` lists them) or by the path of its TOML file.

    `overrides` are `"dotted.path=value"` strings, or a mapping of dotted path to value; they win
    over the file.

    Raises `daqloom.scenario.ScenarioError`, whose text is one sentence for a person.
    """
    from daqloom.system import System
    from daqloom.topology.loaded import load

    return System(load(scenario, overrides))


def sweep(
    system: System,
    axes: Mapping[str, Iterable[Any] | Mapping[str, Any]],
    *,
    method: Method | Sequence[Method] = "simulate",
    seeds: int | Sequence[int] = 1,
    workers: int = 1,
    store: str | PathLike[str] | None = None,
    course: bool = False,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """Every value of each axis with every other, by one method or several, as a dataset.

    `daqloom.sweep(daqloom.load("small-rack"), {"event.rate": ["1 kHz", "2 kHz"]})`; see
    `daqloom.study.sweep.sweep` for every argument. Raises `daqloom.study.StudyError`, whose text is
    one sentence for a person.
    """
    from daqloom.study.sweep import sweep as sweep_over

    return sweep_over(
        system.scenario,
        axes,
        method=method,
        seeds=seeds,
        workers=workers,
        store=store,
        course=course,
        progress=progress,
    )


def write_figure(system: System, result: Result, path: str | PathLike[str]) -> None:
    """Write the figure of one result of `system`, as `--figure` does; the ending says what kind.

    Of a fabric it draws the series that the result has: simulate with `timeline=True` to see what
    each node did when. Raises `daqloom.output.OutputError`, whose text is one sentence for a
    person.
    """
    from pathlib import Path

    from daqloom.report.system.result_figure import write

    write(Path(path), system.scenario, result)


def write_report(
    dataset: xarray.Dataset, folder: str | PathLike[str], *, show: str | None = None
) -> list[Path]:
    """Write the report of a study as `daqloom report` does; the paths, the page first.

    `dataset` comes from `open_study`, with `course=True` if return levels are wanted, and may hold
    variables of your own: `show` names the one to draw. See
    `daqloom.report.study.report.write`. Raises `daqloom.study.StudyError` and
    `daqloom.output.OutputError`, whose text is one sentence for a person.
    """
    from pathlib import Path

    from daqloom.report.study.report import write

    return write(dataset, Path(folder), show=show)


if not TYPE_CHECKING:  # a type checker would take any name of this module to exist

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from daqloom.version import installed

            return installed()
        if name == "open_study":
            from daqloom.study.dataset import open_study

            return open_study
        raise AttributeError(f"module 'daqloom' has no attribute {name!r}")

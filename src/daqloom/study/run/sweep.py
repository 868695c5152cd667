"""A sweep over keys of a system, without a file: `daqloom.sweep(system, {"event.rate": [...]})`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from daqloom.deployment.scenarios import load
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.study import StudyError
from daqloom.study.file.load import study_of
from daqloom.study.file.study import Study
from daqloom.study.file.tables import StudyFile, sentences_of
from daqloom.study.methods.all_methods import Method
from daqloom.study.run.dataset import to_dataset
from daqloom.study.run.runner import Progress, compute

if TYPE_CHECKING:
    import xarray


class HasScenario(Protocol):
    """A system, as `daqloom.load` returns it."""

    @property
    def scenario(self) -> Scenario:
        """Its description."""


def sweep(
    system: HasScenario | str | PathLike[str],
    axes: Mapping[str, Iterable[Any] | Mapping[str, Any]],
    *,
    method: Method | Sequence[Method] = "simulate",
    seeds: int | Sequence[int] = 1,
    workers: int = 1,
    store: str | PathLike[str] | None = None,
    course: bool = False,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """Compute all combinations of the axes' values by one or several methods.

    `system` is a system from `daqloom.load`, or the name or path of a scenario. `axes` maps a key
    of the scenario to a list of values as in a scenario file (`"2 MB"`), or to a range such as
    `{"from": "1 kHz", "to": "9 kHz", "step": "2 kHz"}`. `seeds` is the number n of seeds 1 to n, or
    a list. `workers` is the number of processes on this machine; 0: one for each core. A script
    with several workers needs `if __name__ == "__main__":`, because the workers import it.

    Results are reused from the folder `store`; without it they are not kept. `progress` is called
    with the completed share, 0 to 1.

    See `daqloom.study.run.dataset.open_study` for the dataset. Failed values are NaN, and a warning
    gives the reason. Raises ScenarioError for an unknown scenario, and StudyError for an invalid
    sweep or if all values fail.
    """
    base = load(system) if isinstance(system, str | PathLike) else system.scenario
    study = _study(base, axes, method, seeds)
    with compute(study, store, workers, _share(progress)) as (outcomes, done):
        _report_failures(done)
        return to_dataset(study, outcomes, course=course)


def _study(
    base: Scenario,
    axes: Mapping[str, Iterable[Any] | Mapping[str, Any]],
    method: Method | Sequence[Method],
    seeds: int | Sequence[int],
) -> Study:
    grid = {key: dict(v) if isinstance(v, Mapping) else list(v) for key, v in axes.items()}
    try:
        file = StudyFile(
            scenario=base.name,
            methods=(method,) if isinstance(method, str) else tuple(method),
            grid=grid,
            repeat={"seeds": seeds},
        )
        return study_of(base, file, f"sweep of {base.name}")
    except ValidationError as error:
        raise StudyError(*sentences_of(error)) from None
    except ScenarioError as error:
        raise StudyError(*error.mistakes) from None


def _share(progress: Callable[[float], None] | None) -> Callable[[Progress], None]:
    return lambda how: progress(how.finished / how.tasks) if progress else None


def _report_failures(done: Progress) -> None:
    if not done.failures:
        return
    task, reason = done.failures[0]
    sentence = (
        f"{len(done.failures)} of {done.tasks} answers are missing; the first: {task.method},"
        f" {reason}"
    )
    if len(done.failures) == done.tasks:
        raise StudyError(sentence)
    warnings.warn(sentence, stacklevel=3)

"""A sweep over keys of a system, without a file: `daqloom.sweep(system, {"event.rate": [...]})`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from daqloom.base.claims import claimed_folder
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.study import StudyError
from daqloom.study.file.file import Method, Study, StudyFile, sentences_of, study_of
from daqloom.study.run.dataset import to_dataset
from daqloom.study.run.executor import executor_for
from daqloom.study.run.runner import Progress, replay, run
from daqloom.study.store.store import Store
from daqloom.topology.system.scenarios import load

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
    """Every value of each axis with every other, by one method or several.

    `system` is what `daqloom.load` returns or takes: the name or the path of a scenario. An axis is
    a key of it with a list of values, as a scenario file has them (`"2 MB"`), or
    `{"from": "1 kHz", "to": "9 kHz", "step": "2 kHz"}`. `seeds` are how many, from 1, or which.
    `workers` are processes of this machine; 0 is one for each core. A script that asks for more
    than one does so under `if __name__ == "__main__":`, for its workers import it.

    What `store`, a folder, holds already is not computed again; without it nothing is kept.
    `progress` is called with the share done, 0 to 1.

    The dataset is that of `daqloom.study.run.dataset.open_study`; what failed is NaN, and a warning
    says why. Raises ScenarioError where there is no such scenario, and StudyError where the sweep
    makes no sense, or nothing of it could be computed.
    """
    base = load(system) if isinstance(system, str | PathLike) else system.scenario
    study = _study(base, axes, method, seeds)
    with ExitStack() as stack:
        folder = Path(store or stack.enter_context(claimed_folder()))
        opened = stack.enter_context(Store.open(folder, create=True))
        opened.prepare()
        executor = executor_for(study, opened, workers)
        stack.callback(executor.close)
        found = run(study, opened, executor, _share(progress))
        _tell(found)
        return to_dataset(study, replay(study, opened), course=course)


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


def _tell(found: Progress) -> None:
    if not found.failures:
        return
    task, why = found.failures[0]
    missing = f"{len(found.failures)} of {found.tasks} answers are missing"
    told = f"{missing}; the first: {task.method}, {why}"
    if len(found.failures) == found.tasks:
        raise StudyError(told)
    warnings.warn(told, stacklevel=3)

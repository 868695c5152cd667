"""How commands open a store: whatever they do with it, they tell what of it is damaged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from daqloom.study import StudyError

if TYPE_CHECKING:
    from pathlib import Path

    from xarray import Dataset

    from daqloom.report.study.provenance import WitnessedStore
    from daqloom.study.file.file import Study
    from daqloom.study.store.store import Store

AnyStore = TypeVar("AnyStore", bound="Store")


@contextmanager
def damage_told(store: AnyStore) -> Iterator[AnyStore]:
    """Closes a store in the end, also after a failure, and names its damage on standard error."""
    with store:
        try:
            yield store
        finally:
            for sentence in store.damaged:
                print(f"daqloom: {sentence}", file=sys.stderr)


def read_study(
    file: Path, path: Path, *, quick: bool, course: bool = False
) -> tuple[Study, Dataset, WitnessedStore]:
    """A study with what the store at `path` holds of it; the store is closed.

    Raises StudyError, also where the store holds results of the study's other form alone.
    """
    from daqloom.report.study.provenance import witnessed
    from daqloom.study.file.file import load_study
    from daqloom.study.run.dataset import to_dataset
    from daqloom.study.run.runner import replay

    study = load_study(file, quick=quick)
    with damage_told(witnessed(path)) as opened:
        dataset = to_dataset(study, replay(study, opened), course=course)
        if not opened.origins and _holds_any(load_study(file, quick=not quick), opened):
            raise StudyError(_OTHER_FORM[quick].format(file=file, store=path))
    return study, dataset, opened


_OTHER_FORM = {
    False: "{store} has only results of the quick form of {file}: give --quick to use them, or "
    "compute the full form with `daqloom study run {file}`",
    True: "{store} has no results of the quick form of {file}, only of the full form: leave out "
    "--quick to use them, or compute the quick form with `daqloom study run {file} --quick`",
}


def _holds_any(study: Study, store: Store) -> bool:
    from daqloom.study.run.runner import replay

    return any(outcome is not None for _, outcome in replay(study, store))

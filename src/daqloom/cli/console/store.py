"""Opening and closing of a command's result store, with reports on its damage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from daqloom.base import lazy
from daqloom.study import StudyError

with lazy.imports():
    import xarray

    from daqloom.report.study import provenance
    from daqloom.study.file import load as study_load
    from daqloom.study.file import study as study_study
    from daqloom.study.run import dataset as run_dataset
    from daqloom.study.run import runner
    from daqloom.study.store import store as store_store


AnyStore = TypeVar("AnyStore", bound="store_store.Store")


@contextmanager
def damage_noted(store: AnyStore) -> Iterator[AnyStore]:
    """Close a store at the end, also after an exception; report damage on standard error."""
    with store:
        try:
            yield store
        finally:
            for sentence in store.damage:
                print(f"daqloom: {sentence}", file=sys.stderr)


def read_study(
    file: Path, path: Path, *, quick: bool, course: bool = False
) -> tuple[study_study.Study, xarray.Dataset, provenance.WitnessedStore]:
    """Return a study, the dataset of its stored results, and the closed store. Raises StudyError,
    also if the store has results of the other form (quick or full) only."""
    study = study_load.load_study(file, quick=quick)
    with damage_noted(provenance.WitnessedStore.open(path, create=False)) as opened:
        dataset = run_dataset.to_dataset(study, runner.replay(study, opened), course=course)
        other = None if opened.origins else study_load.load_study(file, quick=not quick)
        if other and any(outcome is not None for _, outcome in runner.replay(other, opened)):
            raise StudyError(_OTHER_FORM[quick].format(file=file, store=path))
    return study, dataset, opened


_OTHER_FORM = {
    False: "{store} has only results of the quick form of {file}: give --quick to use them, or "
    "compute the full form with `daqloom study run {file}`",
    True: "{store} has no results of the quick form of {file}, only of the full form: leave out "
    "--quick to use them, or compute the quick form with `daqloom study run {file} --quick`",
}

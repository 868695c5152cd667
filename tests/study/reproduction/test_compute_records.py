"""A tenth of the shipped records, computed again in quick form. Simulations are exact by their
seed. The tenth depends on the commit, so that all records are computed in turn; without git the
choice is the same each time."""

import math
import subprocess
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from daqloom.study.file.cell import TIMED
from daqloom.study.reproduction.compute import compute, studies
from daqloom.study.reproduction.record import Record, Values, records, shipped_records
from daqloom.study.run.plan import plan
from support.repository import ROOT
from support.small_studies import computed

SHARE = 10
MOST_CPU_S = 15.0
"""Largest estimate for a record in quick form; most searches end sooner than estimated."""
RECORDS = records()


def is_timed(record: Record) -> bool:
    """Return whether a record has measured values, which differ each time."""
    return record.ours is not None and any(
        term.method in TIMED for term in record.ours.named_terms.values()
    )


COMPUTED = [name for name, each in RECORDS.items() if each.ours and not is_timed(each)]


def commit() -> str:
    """Return the commit of the checkout, "" without git."""
    words = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def chosen(of_commit: str) -> list[str]:
    """Return the records to compute at a commit, a tenth of all."""
    order = sorted(COMPUTED, key=lambda name: sha256(f"{of_commit} {name}".encode()).digest())
    return sorted(order[: math.ceil(len(COMPUTED) / SHARE)])


def recomputed(name: str, folder: Path) -> Values:
    datasets = partial(computed, folder=folder)
    return compute(shipped_records()[name], RECORDS[name], datasets, quick=True)


@pytest.mark.parametrize("name", chosen(commit()))
def test_the_stored_quick_value_is_that_of_the_code(name: str, tmp_path: Path) -> None:
    found, stored = recomputed(name, tmp_path / "store"), RECORDS[name].stored.quick
    assert stored is not None
    for end, expected in stored.model_dump(exclude_none=True).items():
        same = getattr(found, end) == pytest.approx(expected, rel=1e-9)
        assert same, f"run: daqloom reproduce {name} --quick --update"


@pytest.mark.parametrize("name", COMPUTED)
def test_a_record_has_values_and_a_short_quick_form(name: str) -> None:
    path, record = shipped_records()[name], RECORDS[name]
    assert record.stored.full, f"run: daqloom reproduce {name} --update"
    assert record.stored.quick, f"run: daqloom reproduce {name} --quick --update"
    list(studies(path, record, quick=False))
    planned = [plan(study, None).cpu_s for _, _, study in studies(path, record, quick=True)]
    assert sum(planned) < MOST_CPU_S


def test_every_record_is_computed_at_some_commit() -> None:
    assert len(chosen("")) == math.ceil(len(COMPUTED) / SHARE)
    commits = (sha256(str(number).encode()).hexdigest() for number in range(300))
    assert {name for each in commits for name in chosen(each)} == set(COMPUTED)

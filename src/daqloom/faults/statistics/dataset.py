"""Failures and error counters as tables: xarray datasets, and Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daqloom.base import lazy
from daqloom.base.output import written_whole
from daqloom.faults.statistics.errors import NAMED
from daqloom.faults.statistics.failure import Failure

with lazy.imports():
    import xarray as xr

if TYPE_CHECKING:
    from daqloom.faults.statistics.errors import LinkErrors
    from daqloom.faults.statistics.summary import Variant


def failures_dataset(kinds: Mapping[str, Variant]) -> xr.Dataset:
    """Return all failures of the first variant (dimension `failure`): begin (UTC), duration (s;
    NaN: not ended), link, cause. A column for each other variant has True for counted failures, and
    for the first of several failures that the variant merges."""
    every = next(iter(kinds.values())).failures
    columns: dict[str, tuple[str, object, dict[str, str]]] = {
        "begin": ("failure", _times(every), {"long_name": "begin (UTC)"}),
        "duration": (
            "failure",
            np.array([np.nan if f.end_s is None else f.end_s - f.begin_s for f in every]),
            {"units": "s", "long_name": "duration; NaN: not ended"},
        ),
        "link": ("failure", np.array([f.link for f in every], dtype=object), {}),
        "cause": ("failure", np.array([f.cause for f in every], dtype=object), {}),
    }
    for name, kind in list(kinds.items())[1:]:
        counted = {(each.begin_s, each.link) for each in kind.failures}
        has = np.array([(each.begin_s, each.link) in counted for each in every], dtype=bool)
        columns[name.replace(" ", "_")] = ("failure", has, {"long_name": f"counted: {name}"})
    return xr.Dataset(columns)


def errors_dataset(errors: Sequence[LinkErrors]) -> xr.Dataset:
    """Return the errors of each link (dimension `link`), with a variable for each counter."""
    names = NAMED | {name: (name, name) for each in errors for name in each.counts}
    columns = {
        name: ("link", [each.counts.get(counter, 0) for each in errors], {"long_name": meaning})
        for name, (counter, meaning) in names.items()
    }
    return xr.Dataset(columns, coords={"link": [each.link for each in errors]})


def _times(failures: Sequence[Failure]) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    micro = np.array([round(1e6 * each.begin_s) for each in failures], dtype="int64")
    return micro.astype("datetime64[us]").astype("datetime64[ns]")


def write_parquet(path: Path, kinds: Mapping[str, Variant]) -> None:
    """Write all failures as a table. Raises OutputError if the file cannot be written."""
    table = failures_dataset(kinds).to_dataframe().reset_index(drop=True)
    with written_whole(path) as scratch:
        table.to_parquet(scratch, index=False)

"""Series of a run: Parquet files in its folder, with bins that are merged with age.

A part `run-L-BEGIN.parquet` or `units-L-BEGIN.parquet` has the bins that begin within a span from
BEGIN (s since the start of the run), by its level L. A part of a higher level replaces all parts
of lower levels within its span. Each part is written whole; the newest one is written again every
few seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from daqloom.base import lazy
from daqloom.base.output import written_whole
from daqloom.base.words import reason_of
from daqloom.control.record.meter import LOSSES, WAITS, Bin
from daqloom.scenario.files import open_regular

with lazy.imports():
    import pyarrow
    from pyarrow import parquet

FOLDER = "series"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
MOST_PARTS = 20_000
LARGEST_PART_BYTES = 256 << 20
MOST_ROWS = 50_000_000
"""Limit on the rows of a part."""
MANTISSA = np.uint32(0xFFFFF800)
"""Bits that are kept of a number in a file: it is right to 1 in 4,000, and packs well."""


@dataclass(frozen=True)
class Level:
    """Parts of one length: made when `age_s` old, of bins of at least `width_s`."""

    span_s: float
    age_s: float
    width_s: float


@dataclass(frozen=True, eq=False)
class Kind:
    """Kind of series: its columns with the way to merge their bins, and its levels."""

    name: str
    columns: Mapping[str, str]
    levels: Sequence[Level]


_COMMON = {"time_s": "first", "width_s": "sum", "events": "sum", "bytes": "sum", "unit_s": "sum"}
_COMMON |= dict.fromkeys(WAITS, "sum")
_FILLS = {"source_fill": "max", "output_fill": "max", "disk_free_bytes": "min"}
RUN = Kind(
    "run",
    {
        **_COMMON,
        **dict.fromkeys(LOSSES, "sum"),
        **{"latency_p50_s": "mean", "latency_p99_s": "mean", "latency_max_s": "max"},
        **_FILLS,
        **{"members": "min", "epoch": "max", "units_lost": "sum", "regroupings": "sum"},
        "phase": "last",
    },
    (
        Level(MINUTE_S, 0, 1),
        Level(HOUR_S, 0, 1),
        Level(DAY_S, DAY_S, 10),
        Level(DAY_S, 7 * DAY_S, 60),
    ),
)
"""Series of the whole run: 1 s for a day, 10 s for a week, 60 s beyond. A `mean` is weighted by
events."""
UNITS = Kind(
    "units",
    {"unit": "first", **_COMMON, **_FILLS, "lost": "sum", "member": "mean"},
    (
        Level(MINUTE_S, 0, 1),
        Level(HOUR_S, HOUR_S, 10),
        Level(DAY_S, DAY_S, 60),
        Level(DAY_S, 7 * DAY_S, 600),
    ),
)
"""Series of each unit: 1 s for an hour, 10 s for a day, 60 s for a week, 600 s beyond."""
KINDS = (RUN, UNITS)
Columns = dict[str, Any]
"""Arrays of equal length by column, NaN for unknown numbers."""


def columns_of(kind: Kind, rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Return rows as columns."""
    listed = list(rows)
    found: Columns = {}
    for name in kind.columns:
        values = [row.get(name, "" if name == "phase" else np.nan) for row in listed]
        found[name] = np.array(values, dtype=object if name == "phase" else float)
    return found


def rows_of(kind: Kind, closed: Bin, offset_s: float) -> list[dict[str, Any]]:
    """Return the rows of a bin; `offset_s`: start of the run control, since that of the run."""
    when = {"time_s": closed.begin_s + offset_s, "width_s": closed.width_s}
    if kind is RUN:
        return [{**closed.run, **when, "phase": str(closed.phase)}]
    return [{**row, **when, "unit": unit} for unit, row in closed.units.items()]


def merge_bins(kind: Kind, columns: Columns, width_s: float) -> Columns:
    """Return the columns with bins of at least `width_s`, sorted by time (and unit)."""
    unit = columns.get("unit", np.zeros(len(columns["time_s"])))
    place = np.floor(columns["time_s"] / width_s + 1e-6)
    order = np.lexsort((columns["time_s"], unit, place))
    columns = {name: values[order] for name, values in columns.items()}
    place, unit = place[order], unit[order]
    if not len(place):
        return columns
    begins = np.flatnonzero(
        np.r_[
            True, (np.diff(place) != 0) | (np.diff(unit) != 0) | (columns["width_s"][1:] >= width_s)
        ]
    )
    ends = np.r_[begins[1:], len(place)] - 1
    weight = np.nan_to_num(columns["events"]) + 1e-9
    found: Columns = {}
    for name, how in kind.columns.items():
        values = columns[name]
        if how in ("first", "last"):
            found[name] = values[begins if how == "first" else ends]
        elif how in ("max", "min"):
            found[name] = (np.fmax if how == "max" else np.fmin).reduceat(values, begins)
        else:
            known = ~np.isnan(values)
            factor = known * (weight if how == "mean" else 1.0)
            summed = np.add.reduceat(np.nan_to_num(values) * factor, begins)
            by = np.add.reduceat(factor, begins) if how == "mean" else 1.0
            is_known = np.logical_or.reduceat(known, begins)
            found[name] = np.divide(summed, by, out=np.full(len(begins), np.nan), where=is_known)
    return found


class SeriesWriter:
    """Writer of a run's series, which continues those in the folder. Its calls raise OSError, or
    MissingExtraError without pyarrow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._open: dict[Kind, dict[str, Columns]] = {kind: {} for kind in KINDS}

    def add(self, bins: Sequence[Bin], offset_s: float) -> None:
        """Write bins to the newest parts. When a minute has ended, older parts are merged."""
        for kind in KINDS:
            rows = [row for each in bins for row in rows_of(kind, each, offset_s)]
            for minute, of_part in groupby(rows, lambda row: row["time_s"] // MINUTE_S):
                self._write(kind, int(minute * MINUTE_S), columns_of(kind, of_part))

    def _write(self, kind: Kind, begin_s: int, more: Columns) -> None:
        path = self._folder / part_name(kind, 0, begin_s)
        last = self._open[kind].get(path.name)
        if last is None:
            with suppress(OSError, ValueError):
                last = read_part(kind, path)
        whole = concatenate(kind, [last, more] if last else [more])
        write_part(path, kind, whole)
        is_new = path.name not in self._open[kind]
        self._open[kind] = {path.name: whole}
        if is_new:
            tidy(self._folder, kind, float(begin_s))


def tidy(folder: Path, kind: Kind, now_s: float) -> None:
    """Merge the parts of which all bins are old enough, `now_s` after the start of the run."""
    for number, level in enumerate(kind.levels[1:], 1):
        spans: dict[float, list[Part]] = {}
        for part in _all_parts(folder, kind):
            begin_s = part.begin_s // level.span_s * level.span_s
            if part.level < number and begin_s + level.span_s + level.age_s <= now_s:
                spans.setdefault(begin_s, []).append(part)
        for begin_s, parts in spans.items():
            target = folder / part_name(kind, number, int(begin_s))
            if not target.exists():
                found, _ = read_parts(kind, _kept(kind, parts))
                write_part(target, kind, merge_bins(kind, found, level.width_s))
            for part in parts:
                part.path.unlink(missing_ok=True)


# ---- files -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """File of a series."""

    path: Path
    level: int
    begin_s: float


def part_name(kind: Kind, level: int, begin_s: int) -> str:
    """Return the file name of a part."""
    return f"{kind.name}-{level}-{begin_s:010d}.parquet"


def _all_parts(folder: Path, kind: Kind) -> list[Part]:
    form = re.compile(rf"{kind.name}-([0-{len(kind.levels) - 1}])-([0-9]{{10}})\.parquet")
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            if match := form.fullmatch(path.name):
                found.append(Part(path, int(match[1]), float(match[2])))
    return found


def _kept(kind: Kind, parts: Sequence[Part]) -> list[Part]:
    known = {(part.level, part.begin_s) for part in parts}
    return [
        part
        for part in parts
        if not any(
            (number, part.begin_s // level.span_s * level.span_s) in known
            for number, level in enumerate(kind.levels)
            if number > part.level
        )
    ]


def write_part(path: Path, kind: Kind, columns: Columns) -> None:
    """Write a part whole. Raises OSError."""
    arrays: Columns = dict(columns)
    if kind is UNITS:
        for name in arrays.keys() - {"time_s", "width_s"}:
            bits = arrays[name].astype(np.float32).view(np.uint32)
            arrays[name] = (bits & MANTISSA).view(np.float32)
    else:
        arrays["phase"] = pyarrow.array(arrays["phase"], pyarrow.string())
    with written_whole(path) as scratch:
        parquet.write_table(pyarrow.table(arrays), scratch, compression="zstd")


def read_part(kind: Kind, path: Path) -> Columns:
    """Return the columns of a part. Raises OSError, or ValueError for a foreign file."""
    with open_regular(path) as file:
        if path.stat().st_size > LARGEST_PART_BYTES:
            raise ValueError(f"it is larger than {LARGEST_PART_BYTES >> 20} MiB")
        try:
            opened = parquet.ParquetFile(file)
            if opened.metadata.num_rows > MOST_ROWS:
                raise ValueError(f"it has {opened.metadata.num_rows:,} rows")
            table = opened.read(columns=list(kind.columns))
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(str(error).partition("\n")[0]) from None
    if missing := [name for name in kind.columns if name not in table.column_names]:
        raise ValueError(f"it has no column {missing[0]}")
    found: Columns = {name: table.column(name).to_numpy() for name in kind.columns}
    return {n: each if n == "phase" else each.astype(float) for n, each in found.items()}


def concatenate(kind: Kind, tables: Sequence[Columns]) -> Columns:
    """Return tables one after the other."""
    if not tables:
        return columns_of(kind, [])
    return {name: np.concatenate([each[name] for each in tables]) for name in kind.columns}


def read_parts(kind: Kind, parts: Iterable[Part]) -> tuple[Columns, list[str]]:
    """Return the columns of readable parts, and a sentence for each of the others."""
    tables, broken = [], []
    for part in parts:
        try:
            tables.append(read_part(kind, part.path))
        except FileNotFoundError:  # merged meanwhile
            continue
        except OSError as error:
            broken.append(f"{part.path} cannot be read: {reason_of(error)}; its bins are missing")
        except ValueError as error:
            broken.append(f"{part.path} is no part of a series: {error}; its bins are missing")
    return concatenate(kind, tables), broken


def read_series(
    folder: Path, kind: Kind, from_s: float = 0.0, until_s: float = float("inf")
) -> tuple[Columns, list[str]]:
    """Return the bins of a run's series from the parts that have some between two times, sorted by
    time, and a sentence for each unreadable part. Raises MissingExtraError without pyarrow."""
    kept = _kept(kind, _all_parts(folder / FOLDER, kind))
    parts = [
        part
        for part in sorted(kept, key=lambda part: part.begin_s)[-MOST_PARTS:]
        if part.begin_s <= until_s and part.begin_s + kind.levels[part.level].span_s >= from_s
    ]
    columns, broken = read_parts(kind, parts)
    order = np.argsort(columns["time_s"], kind="stable")
    return {name: values[order] for name, values in columns.items()}, broken

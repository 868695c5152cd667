"""Record of a run: its description, series, log of events and summary, written to its folder.

No failure of the record ends a run: `Record.failure` has the first one."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from daqloom.base.output import OutputError, write_text
from daqloom.base.version import installed_version
from daqloom.base.words import reason_of
from daqloom.control.protocol.messages import Text
from daqloom.control.protocol.states import Phase
from daqloom.control.record.folders import HINT
from daqloom.control.record.meter import Bin
from daqloom.control.record.series import SeriesWriter

ABOUT, SUMMARY, EVENTS, OLDER, TAGS = (
    "about.json",
    "summary.json",
    "events.jsonl",
    "events-older.jsonl",
    "tags.json",
)
MISSING = "a part of the record is missing"
"""Begin of the log's entry about the first failure of the record."""
FLUSH_S = 2.0
"""Time between two writes of the series and the summary (s); for each 500 units."""
MOST_PENDING = 600
"""Bins that are kept while the disk does not take them; the oldest ones are dropped."""
LARGEST_LOG_BYTES = 32 << 20
"""Size of a log at which it becomes the older one; the one before is removed."""
Count = Annotated[int, Field(ge=0)]
Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _File(BaseModel):
    """Base of the files of a record; names are added at any time."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class About(_File):
    """Description of a run, written at its start."""

    schema_: Annotated[int, Field(alias="schema", le=1)] = 1
    method: Text
    """Command: control, measure or simulate."""
    scenario: Text
    began: datetime
    """Start (UTC); zero of the times of the series."""
    units: Count = 0
    packing: Count = 1
    protocol: Text = ""
    transport: Text = ""
    version: Text = Field(default_factory=installed_version)


class Summary(_File):
    """State and sums of a run; written again while it goes on."""

    state: Text
    """`running`, `ended`, `interrupted` or `failed`."""
    failure: Text = ""
    number: Count | None = None
    """Run number, if the experiment counts its runs."""
    length_s: Time = 0.0
    events: Count = 0
    bytes: Time = 0.0
    building_s: Time = 0.0
    """Time in the phase `running`."""
    recorded_s: Time = 0.0
    """Time of the run until which its series are written (s)."""
    lost: dict[Text, Count] = Field(default_factory=dict)
    """Events by cause of loss, causes without events left out."""
    units_lost: Count = 0
    regroupings: Count = 0
    causes: tuple[tuple[Time, Text], ...] = ()
    """First losses of units: time since the start (s), cause."""

    @property
    def event_rate_hz(self) -> float:
        """Mean event rate while the run built."""
        return self.events / self.building_s if self.building_s else 0.0

    @property
    def throughput_bps(self) -> float:
        """Mean throughput of fragments while the run built."""
        return 8 * self.bytes / self.building_s if self.building_s else 0.0


def iso(began: datetime, time_s: float) -> str:
    """Return a time of a run in ISO 8601, in UTC with its offset, to the millisecond."""
    at = datetime.fromtimestamp(began.timestamp() + time_s, UTC)
    return at.isoformat(timespec="milliseconds")


def local_time(began: datetime, time_s: float = 0.0) -> str:
    """Return a time of a run as local date and time, such as 2026-11-30 03:00:15."""
    return f"{datetime.fromtimestamp(began.timestamp() + time_s):%Y-%m-%d %H:%M:%S}"


class Record:
    """Writer of a record, which continues one that is in the folder already. `offset_s` is the
    time of the run at time 0 of the run control."""

    def __init__(self, folder: Path, about: About, now_s: float = 0.0) -> None:
        """Raise OutputError if the folder cannot be written. `now_s`: time of the run control."""
        self.folder = folder
        self.about = about
        self.building_s = 0.0
        """Time in the phase `running`, with that before a restart of the run control."""
        recorded_s = 0.0
        try:
            self.about = About.model_validate_json((folder / ABOUT).read_bytes())
            before = Summary.model_validate_json((folder / SUMMARY).read_bytes())
            self.building_s, recorded_s = before.building_s, before.recorded_s
        except (OSError, ValueError):
            if self.about is about:  # there is no record yet
                write_text(folder / ABOUT, about.model_dump_json(by_alias=True, indent=2) + "\n")
        self.offset_s = max(0.0, datetime.now(UTC).timestamp() - self.about.began.timestamp())
        self.offset_s -= now_s
        self._recorded_s = recorded_s - self.offset_s
        self.failure = ""
        try:
            self._log = _Log(folder / EVENTS)
        except OSError as error:
            reason = f"cannot write the record in {folder}: {reason_of(error)}; {HINT}"
            raise OutputError(reason) from None
        self._writer = ThreadPoolExecutor(1, "record")
        self._series: SeriesWriter | None = None
        self._pending: deque[Bin] = deque(maxlen=MOST_PENDING)
        self._under_way: Future[None] | None = None
        self._flushed_s = now_s
        self._flush_s = FLUSH_S * max(1, self.about.units // 500)

    def event(self, event: Mapping[str, Any], epoch: int) -> None:
        """Append the fields of a `RunEvent` to the log, at once."""
        kept = {name: event[name] for name in ("about", "phase", "members", "lost")}
        time_s, trouble = event["time_s"] + self.offset_s, event["is_trouble"]
        self.note(time_s, event["text"], **kept, epoch=epoch, trouble=trouble)

    def note(self, time_s: float, text: str, **more: Any) -> None:
        """Append an entry at a time of the run to the log, at once."""
        entry = {"at": iso(self.about.began, time_s), "time_s": round(time_s, 4), "text": text}
        self._attempt(lambda: self._log.write(entry | more))

    def add(
        self, now_s: float, bins: list[Bin], summary: Callable[[], Summary] | None = None
    ) -> None:
        """Take closed bins that the record does not have yet, and write them and the summary from
        time to time."""
        for each in bins:
            if each.begin_s > self._recorded_s - each.width_s / 2:
                self._pending.append(each)
                self.building_s += each.width_s if each.phase is Phase.RUNNING else 0.0
                self._recorded_s = each.begin_s + each.width_s
        if (
            summary is None
            or now_s - self._flushed_s < self._flush_s
            or (self._under_way and not self._under_way.done())
        ):
            return
        self._flushed_s = now_s
        self._under_way = self._writer.submit(self._write, self._taken(), self._add_time(summary()))

    def close(self, summary: Summary) -> None:
        """Write all that is left, and the summary."""
        self._writer.submit(self._write, self._taken(), self._add_time(summary))
        self._writer.shutdown()
        self._log.close()

    def _add_time(self, summary: Summary) -> Summary:
        recorded_s = max(0.0, self._recorded_s + self.offset_s)
        return summary.model_copy(update={"recorded_s": recorded_s})

    def _taken(self) -> list[Bin]:
        taken = list(self._pending)
        self._pending.clear()
        return taken

    def _write(self, bins: list[Bin], summary: Summary) -> None:
        self._attempt(lambda: self._write_series(bins))
        text = summary.model_dump_json(indent=2) + "\n"
        self._attempt(lambda: write_text(self.folder / SUMMARY, text))

    def _write_series(self, bins: list[Bin]) -> None:
        self._series = self._series or SeriesWriter(self.folder)
        self._series.add(bins, self.offset_s)

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # pyarrow is missing, the disk is full
            if not self.failure:
                why = reason_of(error) if isinstance(error, OSError) else str(error)
                self.failure = f"{MISSING}: {why}"
                self.note(self._flushed_s + self.offset_s, self.failure, trouble=True)


class _Log:
    """File of JSON lines, each written at once with one call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()
        if self._bytes and self._ends_within_a_line():  # an interrupted write
            os.write(self._file, b"\n")

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry. Raises OSError."""
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        if self._bytes + len(line) > LARGEST_LOG_BYTES:
            os.replace(self._path, self._path.with_name(OLDER))
            os.close(self._file)
            self._file = self._open()
        written = os.write(self._file, line)
        self._bytes += written
        if written < len(line):  # a full disk
            self._bytes += os.write(self._file, b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self._path, flags, 0o600)
        self._bytes = os.fstat(file).st_size
        return file

    def _ends_within_a_line(self) -> bool:
        return os.pread(self._file, 1, self._bytes - 1) != b"\n"

"""Where a study's numbers come from: commands, machines, versions, times."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from daqloom.results.result import Result
from daqloom.study.store.record import Session
from daqloom.study.store.store import Store

Rows = list[tuple[str, str]]


@dataclass
class Origin:
    """What one process computed of a study."""

    session: Session
    version: str
    runs: int
    first: str
    last: str


class WitnessedStore(Store):
    """A store that remembers where all that it was asked for came from."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        super().__init__(path, command)
        self._seen: set[str] = set()
        self._origins: dict[tuple[Session, str], Origin] = {}

    def get(self, key: str) -> Result | None:
        """Return the result of a cell, as `Store.get` does."""
        record = self.record(key)
        if record is None:
            return None
        if key not in self._seen:
            self._seen.add(key)
            version = record.result.version
            where = (record.session, version)
            origin = self._origins.setdefault(
                where, Origin(record.session, version, 0, record.time, record.time)
            )
            origin.runs += 1
            origin.first = min(origin.first, record.time)
            origin.last = max(origin.last, record.time)
        return record.result

    @property
    def origins(self) -> list[Origin]:
        """Return the origins of a study's results, the oldest first."""
        return sorted(self._origins.values(), key=lambda origin: origin.first)


def witnessed(path: Path) -> WitnessedStore:
    """Opens the store at `path` to read. Raises StudyError."""
    return WitnessedStore.open(path, create=False)


def rows(origins: Iterable[Origin], damaged: Iterable[str] = ()) -> Rows:
    """Name and value, for the end of a report; equal machines and commands told once."""
    found = list(origins)
    damage = [("damage", sentence) for sentence in damaged]
    if not found:
        return damage
    sessions = [o.session for o in found]
    plural = "es" if len(found) > 1 else ""
    table = [
        ("runs", f"{sum(o.runs for o in found):,} by {len(found)} process{plural}"),
        ("computed", _span(found)),
        ("daqloom", _told(o.version for o in found)),
        *_commands(found),
        ("machines", _told(f"{s.host}, {s.processors} cores, {s.system}" for s in sessions)),
        ("Python", _told(s.python for s in sessions)),
        *damage,
    ]
    return [(name, value) for name, value in table if value]


MOST_TOLD = 5
_PART = re.compile(r"--part[ =]\d+/")


def _commands(origins: Iterable[Origin]) -> Iterator[tuple[str, str]]:
    """Each command with what it computed and when, the busiest first; a job array is one."""
    by_command: dict[str, list[Origin]] = {}
    for origin in origins:
        command = _PART.sub("--part I/", origin.session.command)
        by_command.setdefault(command, []).append(origin)
    runs = {command: sum(o.runs for o in given) for command, given in by_command.items()}
    ordered = sorted(by_command, key=lambda command: -runs[command])
    for command in ordered[:MOST_TOLD]:
        number = f"{runs[command]:,} run{'s' if runs[command] > 1 else ''}"
        yield "command", f"{command} ({number}, {_span(by_command[command])})"
    if rest := ordered[MOST_TOLD:]:
        yield "command", f"and {len(rest)} more ({sum(runs[c] for c in rest):,} runs)"


def _span(origins: Iterable[Origin]) -> str:
    """From the first result to the last."""
    found = list(origins)
    return f"{min(o.first for o in found)} to {max(o.last for o in found)}"


def _told(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    if len(different) > MOST_TOLD:
        different[MOST_TOLD:] = [f"and {len(different) - MOST_TOLD} more"]
    return "; ".join(different)

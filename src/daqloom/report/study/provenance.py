"""Provenance of a study's numbers: commands, machines, versions and times."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from daqloom.base.words import plural
from daqloom.results.result import Result
from daqloom.study.store.record import Session
from daqloom.study.store.store import Store

Rows = list[tuple[str, str]]


@dataclass
class Origin:
    """Results of a study that one process computed with one version."""

    session: Session
    version: str
    runs: int
    first: str
    last: str


class WitnessedStore(Store):
    """Store of results that records the origin of each result that it returns."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        super().__init__(path, command)
        self._counted: set[str] = set()
        self._origins: dict[tuple[Session, str], Origin] = {}

    def get(self, key: str) -> Result | None:
        """Return the result of a cell, as `Store.get` does."""
        record = self.record(key)
        if record is None:
            return None
        if key not in self._counted:
            self._counted.add(key)
            where, time = (record.session, record.result.version), record.time
            origin = self._origins.setdefault(where, Origin(*where, 0, time, time))
            origin.runs += 1
            origin.first, origin.last = min(origin.first, time), max(origin.last, time)
        return record.result

    @property
    def origins(self) -> list[Origin]:
        """Return the origins of the returned results, with the oldest first."""
        return sorted(self._origins.values(), key=lambda origin: origin.first)


def rows(origins: Iterable[Origin], damaged: Iterable[str] = ()) -> Rows:
    """Return names and values for the end of a report. Equal machines and commands are merged."""
    found = list(origins)
    damage = [("damage", sentence) for sentence in damaged]
    if not found:
        return damage
    sessions = [o.session for o in found]
    processes = plural(len(found), "process", "processes")
    table = [
        ("runs", f"{sum(o.runs for o in found):,} by {processes}"),
        ("computed", _span(found)),
        ("daqloom", _distinct(map(_sources, found))),
        *_commands(found),
        ("machines", _distinct(f"{s.host}, {s.processors} cores, {s.system}" for s in sessions)),
        ("Python", _distinct(s.python for s in sessions)),
        *damage,
    ]
    return [(name, value) for name, value in table if value]


MOST_VALUES = 5
_PART = re.compile(r"--part[ =]\d+/")


def _commands(origins: Iterable[Origin]) -> Iterator[tuple[str, str]]:
    """Yield each command with runs and times, most runs first; a job array is one command."""
    by_command: dict[str, list[Origin]] = {}
    for origin in origins:
        command = _PART.sub("--part I/", origin.session.command)
        by_command.setdefault(command, []).append(origin)
    runs = {command: sum(o.runs for o in each) for command, each in by_command.items()}
    ordered = sorted(by_command, key=lambda command: -runs[command])
    for command in ordered[:MOST_VALUES]:
        number = plural(runs[command], "run")
        yield "command", f"{command} ({number}, {_span(by_command[command])})"
    if rest := ordered[MOST_VALUES:]:
        yield "command", f"and {len(rest)} more ({sum(runs[c] for c in rest):,} runs)"


def _sources(origin: Origin) -> str:
    commit = origin.session.commit
    return f"{origin.version}, commit {commit}" if commit else origin.version


def _span(origins: list[Origin]) -> str:
    return f"{min(o.first for o in origins)} to {max(o.last for o in origins)}"


def _distinct(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    if len(different) > MOST_VALUES:
        different[MOST_VALUES:] = [f"and {len(different) - MOST_VALUES} more"]
    return "; ".join(different)

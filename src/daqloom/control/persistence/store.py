"""Files of a run in its folder, which only its user can read.

    run.json    what does not change: scenario, name, secret of units
    state.json  the last state of the run control and its processes
    reserved    MEPs before this number may be leased since the last state
    address     address of the run control, for units of this machine

A state is on the disk before anything is sent that follows from it."""

import os
import secrets
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from daqloom._engine import RunControl
from daqloom.base.claims import is_claimed
from daqloom.base.output import OutputError, write_private
from daqloom.base.version import installed_version
from daqloom.base.words import printable, reason_of
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import MOST_UNITS, Count, Counters, Message, Text, UnitNumber
from daqloom.control.protocol.snapshot import Balance, RunSnapshot, Seconds
from daqloom.control.protocol.states import Phase
from daqloom.machine.addresses import split_address
from daqloom.machine.foreign import began_of
from daqloom.machine.processes import ProcessRecord
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import open_regular, read_text

RUN, STATE, RESERVED, ADDRESS = "run.json", "state.json", "reserved", "address"
TOKEN_BYTES = 16
MOST_SETUPS = 100_000
LONGEST_ADDRESS = 300
LONGEST_PATH = 4096
LARGEST_FILE_BYTES = 256 << 20
FRESH_S = 10.0
"""Age of the stored counters at which the state is stored again (s)."""
_T = TypeVar("_T")


class ProcessRow(Message):
    """Local process that runs units."""

    units: Annotated[tuple[UnitNumber, ...], Field(max_length=MOST_UNITS)]
    pid: Annotated[int, Field(ge=1, lt=1 << 31)]
    began: Count
    """Start of the process, in clock ticks since the machine was started."""


class FormerSetup(Message):
    """Sums of the run until the end of a former setup."""

    packing: Count
    counted: Annotated[dict[UnitNumber, Counters], Field(max_length=MOST_UNITS)]
    balance: Balance


class StoredSetup(Message):
    """Setup of the units, with those before it."""

    scenario: dict[str, Any]
    run_number: Count = 0
    replaced: Count = 0
    """Packing of the setup before, whose counters are not final; 0: there is none."""
    former: Annotated[tuple[FormerSetup, ...], Field(max_length=MOST_SETUPS)] = ()


class StoredState(Message):
    """Content of state.json."""

    began_ns: Count
    """Wall-clock time of the start of the run (ns since 1970)."""
    saved_s: Seconds = 0.0
    """Time of the run control at the snapshot (s)."""
    snapshot: RunSnapshot
    setup: StoredSetup | None = None
    """Without one, the setup is that of run.json, and has no run number."""
    processes: Annotated[tuple[ProcessRow, ...], Field(max_length=MOST_UNITS)] = ()


class StoredRun(Message):
    """Content of run.json."""

    version: Text
    name: Text
    """Name of the scenario."""
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,40}$")]
    folder: Annotated[str, Field(max_length=LONGEST_PATH)]
    """Folder in which the run began: a copy of it must not take the units of the original."""
    token: Annotated[bytes, Field(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES)]
    scenario: dict[str, Any]


@dataclass
class Store:
    """The files of a run in `folder`. `state`: that of the former run control, if there was one."""

    folder: Path
    about: StoredRun
    state: StoredState | None = None
    failure: str = ""
    """Reason for which the last state could not be stored."""
    _changes: tuple[object, ...] = field(default=(), init=False)
    _reserved: int = field(default=0, init=False)
    _stored_s: float = field(default=0.0, init=False)

    @classmethod
    def new(cls, folder: Path, name: str, run: str, scenario: dict[str, Any]) -> Self:
        """Begin the files of a new run of the scenario `name`. Raises OutputError."""
        about = StoredRun(
            version=installed_version(),
            name=name[:1000],
            run=run,
            folder=str(folder.absolute()),
            token=secrets.token_bytes(TOKEN_BYTES),
            scenario=scenario,
        )
        store = cls(folder, about)
        for name in (STATE, RESERVED, ADDRESS):
            (folder / name).unlink(missing_ok=True)
        write_private(folder / RUN, about.encode())
        return store

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Return the store of a run whose run control has ended before the run, perhaps before its
        first state; None for a folder without such a run. Raises MeasureError if its files are
        damaged, or of another version."""
        if not os.path.lexists(folder / RUN):
            return None
        has_state = os.path.lexists(folder / STATE)
        if not has_state and os.path.lexists(folder / ADDRESS):
            raise MeasureError(
                f"{folder / STATE} is missing, though the run has begun; begin a new run in "
                "another folder"
            )
        state = _read(folder / STATE, _STATE) if has_state else None
        if state and state.snapshot.phase is Phase.ENDED:
            return None
        about = _read(folder / RUN, _RUN)
        if about.version != installed_version():
            raise MeasureError(
                f"{folder} has a run of daqloom {about.version[:40]}, and this is "
                f"{installed_version()}; continue the run with that version"
            )
        if _has_run(original := Path(about.folder), about) and not original.samefile(folder):
            raise MeasureError(f"{folder} is a copy of a run; continue the original, {original}")
        has_reserved = os.path.lexists(folder / RESERVED)
        reserved = _read(folder / RESERVED, _RESERVED) if has_reserved else 0
        if state and reserved > state.snapshot.reserved_end:
            snapshot = state.snapshot.model_copy(update={"reserved_end": reserved})
            state = state.model_copy(update={"snapshot": snapshot})
        return cls(folder, about, state)

    @property
    def scenario(self) -> dict[str, Any]:
        """Scenario of the last setup."""
        setup = self.state.setup if self.state else None
        return setup.scenario if setup else self.about.scenario

    @property
    def has_processes(self) -> bool:
        """Whether units that the former run control started on this machine are still there."""
        rows = self.state.processes if self.state else ()
        return any(began_of(row.pid) == row.began for row in rows)

    @property
    def age_s(self) -> float:
        """Time since the start of the run (s); 0 for one that begins."""
        return max(0.0, (time.time_ns() - self.state.began_ns) / 1e9) if self.state else 0.0

    @property
    def address_file(self) -> Path:
        """File with the address of the run control."""
        return self.folder / ADDRESS

    @property
    def former_port(self) -> int:
        """Port of the former run control; 0 if there was none."""
        if self.state is None:
            return 0
        try:
            return split_address(read_text(self.address_file, LONGEST_ADDRESS).strip())[1]
        except (OSError, ValueError, MeasureError):
            return 0

    def write_address(self, address: str) -> None:
        """Store the address of the run control. Raises OutputError."""
        write_private(self.address_file, address.encode())

    def save(
        self,
        run: RunControl,
        now_s: float,
        began_ns: int,
        processes: Sequence[ProcessRecord],
        setup: StoredSetup | None = None,
    ) -> None:
        """Store what has changed, before the outputs of `run` are carried out. A failure is kept in
        `failure`, and the run goes on."""
        changes, reserved = (run.changes, tuple(processes), setup), run.reserved_end
        try:
            if changes != self._changes or now_s - self._stored_s > FRESH_S:
                rows = tuple(
                    ProcessRow(units=each.units, pid=each.pid, began=each.began)
                    for each in processes
                )
                snapshot = wire.message(run.snapshot())
                assert isinstance(snapshot, RunSnapshot)
                state = StoredState(
                    began_ns=began_ns,
                    saved_s=now_s,
                    snapshot=snapshot,
                    setup=setup,
                    processes=rows,
                )
                write_private(self.folder / STATE, state.encode())
                self._changes, self._stored_s = changes, now_s
            elif reserved != self._reserved:
                write_private(self.folder / RESERVED, str(reserved).encode())
            self._reserved = reserved
        except (OutputError, ValidationError) as error:
            self.failure = str(error)


def interrupted_run(folders: Iterable[Path], name: str) -> Path | None:
    """Return the first folder with a run of the scenario `name` whose run control has ended before
    it, if any. Folders with damaged files are left out."""
    for folder in folders:
        with suppress(MeasureError):
            found = None if is_claimed(folder) else Store.find(folder)
            if found and found.about.name == name:
                return folder
    return None


def has_units(folder: Path) -> bool:
    """Return whether a run without a run control has units on this machine; a damaged one is not
    known to."""
    with suppress(MeasureError):
        found = Store.find(folder)
        return found is not None and found.has_processes
    return False


def _has_run(folder: Path, about: StoredRun) -> bool:
    """Return whether the run `about` is in a folder."""
    with suppress(MeasureError):
        return _read(folder / RUN, _RUN).token == about.token
    return False


_RUN, _STATE = TypeAdapter(StoredRun), TypeAdapter(StoredState)
_RESERVED: TypeAdapter[int] = TypeAdapter(Count)


def _read(path: Path, adapter: TypeAdapter[_T]) -> _T:
    """Read a file of this user. Raises MeasureError."""
    try:
        with open_regular(path) as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise MeasureError(f"{path} can be written by other users; begin a new run")
            content = file.read(LARGEST_FILE_BYTES)
        return adapter.validate_json(content)
    except OSError as error:
        raise MeasureError(f"{path} cannot be read: {reason_of(error)}; begin a new run") from None
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg'].lower()}"
        raise MeasureError(
            f"{path} is not the state of a run ({printable(reason[:200])}); begin a new run"
        ) from None

"""A node without an engine, which misbehaves on demand, and the program of units that hold it.

Units of a run meet in a folder, a file per unit and epoch: who does not write its file in time is
missing. A file `fault-N` in that folder says what unit N does wrong: see `Faults`."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from daqloom._engine import Counters, ShiftStage
from daqloom.control.protocol.messages import Configure

FOLDER = "FAKE_NODE_FOLDER"
"""The folder, where the run control's document names none."""


class FakeNode:
    """`folder`: where the units of a run meet."""

    def __init__(self, folder: Path, unit: int) -> None:
        self.folder, self.unit = folder, unit
        self.made_s = time.monotonic()
        self.epoch = 0
        self.members: list[int] = []
        self.first_mep = 0
        self.since: float | None = None
        self.warnings = ("its cores are far away",) if self.fault() == "far" else ()
        if self.fault() == "unmakeable":
            raise ValueError("the provider is not there")

    def fault(self) -> str:
        """Return the fault that the node has at present."""
        try:
            return (self.folder / f"fault-{self.unit}").read_text()
        except OSError:
            return ""

    def prepare(
        self,
        epoch: int,
        members: Sequence[int],
        moved: Sequence[tuple[int, int, int]],
        *schedule: Sequence[int],
    ) -> bytes:
        if self.fault() == "unpreparable":
            raise RuntimeError("no memory for a transport")
        self.epoch, self.members = epoch, list(members)
        return f"{self.unit}@{epoch}".encode()

    def connect(self, addresses: Sequence[tuple[int, bytes]], timeout_s: float) -> list[int]:
        assert [unit for unit, _ in addresses] == self.members
        assert all(address == f"{unit}@{self.epoch}".encode() for unit, address in addresses)
        return [unit for unit in self.members if f"cut-{unit}" in self.fault().split()]

    def start(self, first_mep: int) -> None:
        self.first_mep, self.since = first_mep, time.monotonic()

    def close(self, lost: Sequence[int]) -> None:
        """Do nothing: the node drains at once."""

    def drain(self, wait_until_s: float, until_s: float) -> int:
        if self.fault() == "never-halts":
            threading.Event().wait()
        self.first_mep, self.since = self.next_mep(), None
        return self.first_mep

    def counters(self) -> Counters:
        stuck = self.fault() == "stuck"
        beats = 0 if stuck else time.monotonic_ns() // 1000
        done = self.next_mep()
        return Counters(
            {
                "elapsed_s": time.monotonic() - self.made_s,
                "beats": beats,
                "steps": done,
                "next_mep": done,
                "meps_delivered": done,
                "meps_built": done,
                "meps_processed": done,
                "meps_wrong": done // 100 if self.fault() == "wrong" else 0,
                "mfp_bytes_built": 1000 * done,
            }
        )

    def lease(self, mep_end: int, until_s: float, beat: int) -> None:
        """Ignore the lease."""

    def take_stages(self) -> list[tuple[int, int, int, int, ShiftStage]]:
        """More than go into a message."""
        return [(step, self.epoch, step, -1, ShiftStage.idle) for step in range(4500)]

    def take_arrivals(self) -> tuple[int, list[int], int]:
        """Return arrivals at unit 0, more than go into a message, and some beyond."""
        return (1000, list(range(4500)), 7) if self.unit == 0 else (1000, [], 0)

    def connections(self) -> list[SimpleNamespace]:
        """Return no connection: the node has no network."""
        return []

    def suspects(self) -> list[int]:
        return [unit for unit in self.members if f"cut-{unit}" in self.fault().split()]

    def shut(self) -> None:
        self.since = None

    def next_mep(self) -> int:
        """A thousand a second."""
        since = self.since
        return self.first_mep + (0 if since is None else int(1000 * (time.monotonic() - since)))


def make(order: Configure, token: bytes, control: str) -> FakeNode:
    assert len(token) == 16
    folder = order.scenario.get("folder", os.environ.get(FOLDER, "/nowhere"))
    return FakeNode(Path(folder), order.unit)


def main() -> None:
    from daqloom.control.unit_program import run_unit
    from daqloom.results.errors import MeasureError

    options = argparse.ArgumentParser()
    options.add_argument("--control", required=True)
    options.add_argument("--unit", type=int)
    options.add_argument("--parent", type=int)
    options.add_argument("--certificates", type=Path)
    options.add_argument("--while-input", action="store_true")
    options.add_argument("--address-file", type=Path)
    options.add_argument("--patience", dest="patience_s", type=float, default=10.0)
    try:
        run_unit(make_node=make, **vars(options.parse_args()))
    except MeasureError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

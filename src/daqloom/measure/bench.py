"""Units and network of a measurement, kept for the next measurements that can use them: a start of
all processes takes longer than many a point of a study."""

import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from daqloom.base.claims import claimed_folder
from daqloom.control.run_folder import run_folder
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.machine.launch import Launcher, Local
from daqloom.machine.processes import cpu_time_s, log_file
from daqloom.measure.configure import places
from daqloom.measure.fault_plan import unit_outages
from daqloom.measure.new_setup import check_changeable
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

STAY = "--stay"
"""Option of a unit that joins the next run when one ends."""


class Bench:
    """Processes of units, in a laboratory if the scenario has one, with a folder for their output.
    They join each run control that listens at the same address with the same token."""

    def __init__(self, scenario: Scenario) -> None:
        self.token = secrets.token_bytes(16)
        self.port = 0
        """Port of the first run control, which later ones have too; 0: none yet."""
        self.lab: Laboratory | None = None
        self._scenario = scenario
        self._units: list[subprocess.Popen[bytes]] = []
        with ExitStack() as stack:
            self.folder = stack.enter_context(run_folder(None))
            # Paths of sockets must be short.
            self.socket_file = stack.enter_context(claimed_folder()) / "units"
            if scenario.measure.has_lab:
                self.lab = stack.enter_context(Laboratory(lab_network(scenario)))
            self._stack = stack.pop_all()

    def suits(self, scenario: Scenario) -> bool:
        """Return whether the processes and the network serve a scenario too."""
        try:
            check_changeable(self._scenario, scenario)
        except ScenarioError:
            return False
        is_same = places(scenario).units == len(self._units)
        if self.lab:
            is_same = is_same and lab_network(scenario) == self.lab.network
        return is_same and all(unit.poll() is None for unit in self._units)

    def start(self, units: int, address: str) -> None:
        """Start the units, which connect to the run control at `address`. Raises OSError."""
        launcher: Launcher = Local(options=(STAY,))
        if self.lab:
            launcher = self.lab.launching(launcher)
        for task in launcher.tasks(range(units), address):
            with log_file(self.folder, task.units[0]).open("ab") as output:
                unit = subprocess.Popen(
                    task.command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # Ctrl-C is for the measurement, which ends units
                )
            self._units.append(unit)
            assert unit.stdin is not None
            with suppress(OSError), unit.stdin:
                unit.stdin.write(self.token.hex().encode() + b"\n")

    def cpu_s(self) -> float:
        """Return the CPU time of the units until now (s)."""
        return sum(cpu_time_s(unit.pid) or 0.0 for unit in self._units)

    def peak_rss_bytes(self) -> int:
        """Return the peak memory of the largest unit (bytes)."""
        found = [0]
        for unit in self._units:
            with suppress(OSError):
                status = Path(f"/proc/{unit.pid}/status").read_text()
                found += [int(kib) * 1024 for kib in re.findall(r"VmHWM:\s*(\d+)", status)]
        return max(found)

    def close(self, error: BaseException | None = None) -> None:
        """End the units and the network, after `error`. Raises MeasureError that names the folder
        which is kept after a failure."""
        for unit in self._units:
            with suppress(ProcessLookupError):
                os.killpg(unit.pid, signal.SIGKILL)  # it leads a session of its own
            unit.wait()
        self._stack.__exit__(type(error) if error else None, error, None)


class _Shelf:
    """Place for the bench of the last measurement."""

    is_open = False
    bench: Bench | None = None


@contextmanager
def kept_units() -> Iterator[None]:
    """Keep the units of a measurement for the next ones, until the end of the `with` block."""
    _Shelf.is_open = True
    try:
        yield
    finally:
        _Shelf.is_open = False
        bench, _Shelf.bench = _Shelf.bench, None
        if bench:
            bench.close()


@contextmanager
def bench_for(scenario: Scenario) -> Iterator[Bench | None]:
    """Yield the bench for a measurement, the kept one if it suits; None outside of `kept_units`, or
    for a scenario that needs new processes. A bench is not kept after a failure."""
    measure = scenario.measure
    is_apart = measure.namespaces or measure.device or measure.launch != "local"
    is_placed = measure.cores or scenario.hosts.placement == "table"
    is_kept = _Shelf.is_open and not (is_apart or is_placed or unit_outages(scenario))
    bench, _Shelf.bench = _Shelf.bench, None
    if bench and not (is_kept and bench.suits(scenario)):
        bench.close()
        bench = None
    if not is_kept:
        yield None
        return
    bench = bench or Bench(scenario)
    try:
        yield bench
    except BaseException as error:
        bench.close(error)
        raise
    _Shelf.bench = bench

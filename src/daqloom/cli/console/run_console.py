"""`daqloom control SCENARIO`: runs the run control, shows its status, and reads commands."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from daqloom.base import lazy
from daqloom.base.log import LOG, identify
from daqloom.base.output import OutputError
from daqloom.base.words import reason_of
from daqloom.cli.console.recording import note_missing_series, print_summary, run_record
from daqloom.cli.console.run import headline, live_table, overview, unit_table
from daqloom.cli.console.terminal import note
from daqloom.control.control import Control
from daqloom.control.counters.pages import pages_folder
from daqloom.control.counters.warnings import lost_events, unfinished_files
from daqloom.control.hooks.document import load_hooks
from daqloom.control.persistence.store import Store, interrupted_run
from daqloom.control.persistence.supervise import SUPERVISED, supervise
from daqloom.control.protocol.states import Phase
from daqloom.control.record.folders import (
    locked_run_folder,
    new_run_folder,
    run_folders,
    runs_root,
)
from daqloom.control.record.record import SUMMARY
from daqloom.control.run_folder import run_folder
from daqloom.control.run_log import RunEvent, report_entry
from daqloom.control.run_numbers import RunNumbers
from daqloom.control.status import Request
from daqloom.control.steering import SteeringOptions
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, new_run_name
from daqloom.measure.signals import SignalledError, stopped_by_signals, unless_stopped
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

with lazy.imports():
    import termios
    import tty

    from rich import console as rich_console
    from rich import live as rich_live


REFRESH_S = 0.5
LONGEST_LINE = 100
LOG_WIDTH = 120
"""Line width (characters) without a terminal."""
COMMAND = (sys.executable, "-m", "daqloom", "control", "up")
"""Command that continues a run."""
COMMANDS = "configure [KEY=VALUE], start, stop, reset N, include N, exclude N, status, exit"
RUN_NUMBERS = "run-number"
"""File of run numbers in the folder of runs."""


def keep_up(
    scenario: Scenario | None,
    *,
    log_dir: Path | None = None,
    start: bool = False,
    folder: Path | None = None,
    resume: bool = False,
    hooks: Path | None = None,
    run_numbers: Path | None = None,
) -> None:
    """Run units until `exit`, Ctrl-C or SIGTERM. If `folder` has a run whose run control has ended
    before it, or with `resume` a run of the scenario has, continue that run. `hooks`: file of
    hooks; `run_numbers`: file with the last run number, by default in the folder of runs. Raises
    ScenarioError, MeasureError, OutputError."""
    if resume and scenario and folder is None:
        folder = interrupted_run(run_folders(), scenario.name)
    is_named = folder is not None
    former = Store.find(folder) if folder else None
    if former:
        if scenario and scenario.model_dump(mode="json", exclude_unset=True) != former.scenario:
            note(
                f"the run in {folder} goes on with its own values; `daqloom control configure "
                "--set` changes them"
            )
        scenario = Scenario.model_validate(former.scenario)
    if scenario is None:
        raise ScenarioError(
            f"{folder} has no run without a run control; give a scenario to begin one"
        )
    if scenario.faults.injected or scenario.measure.is_apart:
        raise ScenarioError(
            "faults.injected, measure.namespaces and measure.lab are for `daqloom measure`, which "
            "follows a plan; leave them out, and break what you like by hand"
        )
    steering = SteeringOptions(
        hooks=load_hooks(hooks) if hooks else (),
        hook_folder=hooks.absolute().parent if hooks else Path(),
        numbers=RunNumbers(run_numbers or runs_root() / RUN_NUMBERS),
        replan=new_setup,
    )
    if scenario.measure.control_grace == 0:
        with run_record(scenario.name) as record, run_folder(log_dir) as logs:
            asyncio.run(_keep_up(scenario, logs, start, record, steering))
        return
    folder = _made_folder(folder, scenario.name)
    with locked_run_folder(folder):
        store = former or Store.new(
            folder,
            scenario.name,
            new_run_name(),
            scenario.model_dump(mode="json", exclude_unset=True),
        )
    if scenario.measure.supervise and SUPERVISED not in os.environ:
        options = ["--start"] if start else []
        options += ["--log-dir", str(log_dir)] if log_dir else []
        options += ["--hooks", str(hooks)] if hooks else []
        options += ["--run-numbers", str(run_numbers)] if run_numbers else []
        sys.exit(supervise([*COMMAND, "--folder", str(folder), *options]))
    with locked_run_folder(folder), pages_folder(store.about.run) as counters:
        note(f"the run is in {folder}")
        note_missing_series()
        logs = log_dir or folder
        logs.mkdir(parents=True, exist_ok=True)
        try:
            asyncio.run(_keep_up(scenario, logs, start, folder, steering, store, str(counters)))
        except (MeasureError, OutputError):  # it did not begin, or was not continued
            if not is_named and not (folder / SUMMARY).exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        print_summary(folder)


def _made_folder(folder: Path | None, name: str) -> Path:
    """Return the folder of a run, made if necessary. Raises OutputError."""
    if folder is None:
        return new_run_folder(name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = reason_of(error)
        raise OutputError(f"cannot make {folder}: {reason}; give another folder") from None
    return folder.absolute()


async def _keep_up(
    scenario: Scenario,
    folder: Path,
    start: bool,
    record: Path | None,
    steering: SteeringOptions,
    store: Store | None = None,
    counters: str = "",
) -> None:
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    reply: list[str] = []

    def on_event(event: RunEvent) -> None:
        report_entry(event)
        if LOG.disabled and not interactive:
            print(f"{event.time_s:9.2f} s  {event.text}", flush=True)

    control = control_of(
        scenario,
        folder,
        on_event=on_event,
        record=record,
        steering=steering,
        store=store,
        counters=counters,
    )
    identify(run=control.plan.run)
    with stopped_by_signals() as stop, ExitStack() as stack:
        async with control:
            token = stack.enter_context(control.publish())
            note(f"the run control listens at {control.address}")
            if not control.run.plan.launches:
                command = f"daqloom unit --control {control.address} --token-file {token}"
                if scenario.measure.certificates:
                    command += f" --certificates {scenario.measure.certificates}"
                note(f"start {control.run.plan.units} units: {command}")
            if start and not (store and store.state):
                control.obey(Request(command="start"))

            def obey(line: str) -> None:
                reply[:] = [_obey(control, line)]
                if reply[0] and not interactive:
                    print(reply[0], flush=True)

            ended = control.until(lambda: control.run.phase is Phase.ENDED)
            shown = asyncio.create_task(_shown(control, obey, reply)) if interactive else None
            with nullcontext() if interactive else _lines(obey), suppress(SignalledError):
                await unless_stopped(ended, stop)
            if shown:
                shown.cancel()
                await asyncio.gather(shown, return_exceptions=True)
        sink = scenario.measure.sink
        lost = [
            sentence
            for part in control.parts()
            for sentence in lost_events(part.counted, part.packing, sink)
        ]
        for sentence in (*lost, *unfinished_files(scenario)):
            note(sentence)


def _obey(control: Control, line: str) -> str:
    """Execute a typed command and return the reply."""
    try:
        words = shlex.split(line)
        if not words:
            return ""
        request = _request(words[0], words[1:])
    except ValueError:
        return f'"{line[:40]}" is not a command; commands are {COMMANDS}'
    status = control.obey(request)
    if request.command != "status":
        return status.refusal
    return "\n".join([headline(status), *overview(status), _plain(unit_table(status, LOG_WIDTH))])


def _request(command: str, words: Sequence[str]) -> Request:
    """Return the request of a typed command, as its options have it. Raises ValueError."""
    fields: dict[str, Any] = {}
    if command == "configure":
        fields = {"settings": tuple(words)}
    elif command == "reset" and len(words) == 1:
        fields = {"unit": int(words[0])}
    elif words:
        numbers = [word for word in words if word != "--sources"]
        fields = {"units": tuple(map(int, numbers)), "sources": len(numbers) < len(words)}
    return Request.model_validate({"command": command, **fields})


def _plain(table: Any) -> str:
    console = rich_console.Console(width=LOG_WIDTH, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip()


@contextmanager
def _lines(obey: Callable[[str], None]) -> Iterator[None]:
    """Pass lines of standard input to `obey` if there is no terminal."""
    loop, rest = asyncio.get_running_loop(), b""

    def read() -> None:
        nonlocal rest
        given = os.read(0, 4096)
        *lines, rest = (rest + given).split(b"\n")
        rest = rest[-LONGEST_LINE:]
        for line in lines:
            obey(line[:LONGEST_LINE].decode(errors="replace"))
        if not given:
            loop.remove_reader(0)

    try:
        loop.add_reader(0, read)
    except OSError:  # epoll rejects plain files and /dev/null: read all
        for line in sys.stdin.read(1 << 16).splitlines():
            obey(line)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            loop.remove_reader(0)


async def _shown(control: Control, obey: Callable[[str], None], reply: list[str]) -> None:
    """Show a live table on the terminal, with a line for typed commands."""
    typed = ""
    changed = asyncio.Event()

    def read() -> None:
        nonlocal typed
        for character in os.read(0, 256).decode(errors="ignore"):
            if character in "\r\n":
                obey(typed)
                typed = ""
            elif character in "\x7f\b":
                typed = typed[:-1]
            elif character.isprintable():
                typed = (typed + character)[:LONGEST_LINE]
        changed.set()

    loop = asyncio.get_running_loop()
    before = termios.tcgetattr(0)
    tty.setcbreak(0)  # keeps Ctrl-C as a signal
    loop.add_reader(0, read)
    try:
        with rich_live.Live(auto_refresh=False) as live:
            while True:
                changed.clear()
                hint = " ".join(reply) or COMMANDS
                shown = live_table(control.status(), live.console.size, f"{typed}_", hint)
                live.update(shown, refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), REFRESH_S)
    finally:
        loop.remove_reader(0)
        termios.tcsetattr(0, termios.TCSADRAIN, before)

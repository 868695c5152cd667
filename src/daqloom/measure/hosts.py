"""Checks of all hosts of a scenario, made on each host by the launcher of its units."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pydantic import TypeAdapter

from daqloom.base.words import reason_of
from daqloom.machine.addresses import own_address
from daqloom.machine.cards import cards_of
from daqloom.machine.doctor import examine, transports_here
from daqloom.machine.findings import Finding
from daqloom.machine.launch import Launcher, Slurm
from daqloom.machine.machine import Machine
from daqloom.machine.programs import TooLongError, run_program
from daqloom.measure.configure import machines, places, unit_placement
from daqloom.measure.plan import launcher_of, needs_of
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.models import Scenario

COMMAND = (sys.executable, "-m", "daqloom", "doctor", "--json", "--of-units")
"""Command that examines the host of these units, with the scenario on standard input."""
TIMEOUT_S, MOST_BYTES, MOST_AT_ONCE = 60.0, 1 << 20, 64
FINDINGS = TypeAdapter(list[Finding])


def examine_scenario(scenario: Scenario, own: Callable[[], list[Finding]]) -> list[Finding]:
    """Return the findings on all hosts of a scenario; `own` returns those on this installation, the
    version first. Raises ScenarioError, and MeasureError outside a Slurm allocation."""
    launcher, names = launcher_of(scenario), machines(scenario, places(scenario).units)
    if scenario.measure.launch not in ("ssh", "slurm"):
        return own() + examine_here(scenario, range(len(names)))
    if is_free := isinstance(launcher, Slurm) and not launcher.hosts:
        nodes = os.environ.get("SLURM_JOB_NODELIST", "")  # of the allocation
        names = _output(("scontrol", "show", "hostnames", nodes)).split()
        launcher = replace(launcher, hosts=names)
    document = json.dumps(scenario.model_dump(mode="json", exclude_unset=True)).encode()
    version = own()[0]

    def examine_host(name: str) -> list[Finding]:
        unit = names.index(name)
        units = [] if is_free else [str(each) for each, at in enumerate(names) if at == name]
        try:
            clock = _clock(launcher, unit)
            report = _output(launcher.command_at(unit, (*COMMAND, ",".join(units))), document)
            first, *others = FINDINGS.validate_json(report)
        except (MeasureError, ValueError) as error:
            why = str(error) if isinstance(error, MeasureError) else "its report is malformed"
            fix = "Correct ssh or Slurm, and install daqloom at the same path on each host."
            return [Finding("reachable", "fail", f"{why}.", fix, name)]
        if first != version:
            means = f"{first.means[:200]} The run control has {version.means}"
            first = Finding("daqloom", "fail", means, "Install the same version on each host.")
        return [replace(each, host=name) for each in (clock, first, *others)]

    hosts = list(dict.fromkeys(names))
    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(hosts))) as pool:
        return [each for found in pool.map(examine_host, hosts) for each in found]


def _output(command: Sequence[str], text: bytes = b"") -> str:
    """Return the output of a program, which may end with any exit code. Raises MeasureError if it
    has none."""
    try:
        done = run_program(command, text, TIMEOUT_S, MOST_BYTES)
        if done.stdout.strip():
            return done.stdout.decode(errors="replace")
        lines = done.stderr.decode(errors="replace").strip().rpartition("\n")
        why = lines[2][:300] or "no output"
    except TimeoutError:
        why = f"no end after {TIMEOUT_S:g} s"
    except TooLongError:
        why = "more than 1 MiB of output"
    except OSError as error:
        why = reason_of(error)
    raise MeasureError(f"{' '.join(command)[:200]}: {why}")


def _clock(launcher: Launcher, unit: int) -> Finding:
    """Return the finding on the clock of a unit's host. Raises MeasureError, ValueError."""
    began_s = time.time()
    there_s = float(_output(launcher.command_at(unit, ("date", "+%s.%N"))))
    least_s, most_s = there_s - time.time(), there_s - began_s
    means = f"{least_s:+.3f} s to {most_s:+.3f} s from the clock of this machine."
    if least_s <= 0 <= most_s:
        return Finding("clock offset", "ok", means)
    return Finding("clock offset", "warn", means, "Synchronise the clocks, such as by chronyd.")


def examine_here(scenario: Scenario, units: Sequence[int]) -> list[Finding]:
    """Return the findings on this machine as the host of `units`; none: of unknown units."""
    machine, measure, total = Machine(), scenario.measure, places(scenario).units
    found = examine(machine, transports_here(), needs_of(scenario))
    interfaces: list[str] = []
    try:
        if measure.network:
            own_address(f"{measure.bind}:0", measure.network)
        for unit in units:
            placed = unit_placement(scenario, unit, total)
            interfaces += placed.device.interfaces[:1] if placed.device else ()
            fix = "Give cores, memory and device of one NUMA node."
            found += [Finding(f"unit {unit}", "warn", f"{text}.", fix) for text in placed.warnings]
    except MeasureError as error:
        found.append(Finding("placement", "fail", f"{error}.", "Correct hosts.units or [measure]."))
    names = dict.fromkeys(interfaces or cards_of(machine))
    found += [_link(machine, name, needed=bool(interfaces)) for name in names]
    if measure.sink_files:
        found.append(_disk(scenario, (len(units) or total) / total))
    return found


def _link(machine: Machine, name: str, *, needed: bool) -> Finding:
    state = machine.text(f"sys/class/net/{name}/operstate") or "unknown"
    mtu, mbps = (machine.number(f"sys/class/net/{name}/{what}") for what in ("mtu", "speed"))
    means = f"{state}, {f'{mbps / 1000:g} Gb/s' if mbps else 'rate unknown'}, MTU {mtu} B."
    fix = f"Check its cable; `ip link set {name} up`." if state.endswith("down") and needed else ""
    return Finding(f"{name}: link", "fail" if fix else "ok", means, fix)


def _disk(scenario: Scenario, share: float) -> Finding:
    """Return the finding on the disk for the recordings of this share of the units."""
    measure, folder = scenario.measure, scenario.measure.sink_files
    needed = scenario.event.rate * sum(places(scenario).fragment_bytes) * measure.duration * share
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return Finding("disk", "fail", f"{folder}: {reason_of(error)}.", "Make this folder.")
    free = status.f_bavail * status.f_frsize
    means = f"{free / 1e9:.1f} GB are free in {folder}, and a run writes {needed / 1e9:.1f} GB."
    fix = "" if free >= needed else "Free some, or record a shorter run, or in another folder."
    return Finding("disk", "fail" if fix else "ok", means, fix)

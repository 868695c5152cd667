"""`daqloom lab`: switches under test, and restoring them after a crash."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from daqloom import load
from daqloom.base import lazy
from daqloom.base.words import printable
from daqloom.cli.app import group
from daqloom.cli.console.columns import print_list, print_table
from daqloom.cli.console.terminal import note, print_json, staged_progress
from daqloom.cli.options import Json, JsonList, Name, Quiet, Set, argument
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import with_unit
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from daqloom.device import port_states, reference, registry, under_test
    from daqloom.scenario.schema import part
    from daqloom.study.run import probe as run_probe


app = group(
    help="""Switches under test: their adapters, their buffers, and restoring them.

    `measure.device` in a scenario names the file of a switch. A measurement sets its buffers to the
    values of [network.switch], and restores them at the end.

    \b
    Examples:
      daqloom lab adapters
      daqloom lab adapters sonic
      daqloom lab show tor.toml
      daqloom measure rack.toml --set measure.device=$PWD/tor.toml --dry-run
      daqloom lab plan rack.toml --set measure.device=$PWD/tor.toml
      daqloom lab restore
      daqloom lab probe lab-rack --set network.switch.tor.model=drop-tail
    """,
)

File = Annotated[Path, argument("FILE", "File of a switch, as measure.device names it.")]


@app.command()
def adapters(
    name: Annotated[str | None, argument("NAME", "Adapter whose keys are listed.")] = None,
    json: JsonList = False,
) -> None:
    """List the adapters, or the keys of an adapter."""
    for sentence in registry.name_conflicts(None if name is None else [name]):
        note(sentence)
    if name is not None:
        meanings = part.meanings(registry.adapter_type(name).Options)
    else:
        meanings = {each: _what(each) for each in registry.names()}
        for sentence in registry.missing():
            note(sentence)
    if json:
        kind = "adapters" if name is None else "keys"
        listed = [{"name": each, "text": text} for each, text in meanings.items()]
        print_json({"schema": 1, kind: listed})
    else:
        print_list(meanings)


def _what(name: str) -> str:
    """Return a sentence on an adapter's purpose, or on a requirement missing on this machine."""
    try:
        kind = registry.adapter_type(name)
    except ScenarioError as error:
        return str(error)
    return reference.does(kind)


@app.command()
def show(file: File, json: Json = False) -> None:
    """Show settings and counters of a switch's ports; nothing is changed."""
    found = port_states.port_states(file)
    if json:
        print_json({"schema": 1, "ports": found})
        return
    names = list(dict.fromkeys(key for port in found.values() for key in port))
    rows = [[port, *(f"{counts.get(key, '-')}" for key in names)] for port, counts in found.items()]
    print_table(["port", *names], rows)


@app.command()
def plan(scenario: Name, set_: Set = None, json: JsonList = False) -> None:
    """Print the steps that a measurement would apply to the switch of a scenario, without changes.

    Runs only the commands in the device's file that read the switch. `daqloom measure --dry-run`
    prints these commands without connecting to the switch.

    \b
    Example:
      daqloom lab plan rack.toml --set measure.device=$PWD/tor.toml
    """
    found = load(scenario, set_ or ()).scenario
    if not found.measure.device:
        raise ScenarioError(
            f"{scenario}: measure.device is not given; expected the file of a switch"
        )
    steps = under_test.DeviceUnderTest(found).plan()
    if json:
        print_json({"schema": 1, "steps": steps})
        return
    for step in steps or ["# nothing is set: the switch has all that the scenario gives"]:
        print(printable(step))


@app.command()
def restore(json: Json = False) -> None:
    """Restore switches whose measurement crashed.

    A measurement saves the settings of a switch before it changes them. This command restores
    switches whose measurement ended without restoring them, for example by kill -9 or a power cut,
    the newest first. It then reads and prints the settings of each switch.
    """
    done, failures = under_test.restore_left()
    if json:
        restored = [
            {
                "device": each.old.source,
                "saved_at": each.old.at,
                "has_it": each.is_current,
                "ports": {port: buffer.set_fields for port, buffer in each.ports.items()},
            }
            for each in done
        ]
        print_json({"schema": 1, "restored": restored, "failed": failures})
    else:
        for each in done:
            print(printable(each.sentence))
        if not done and not failures:
            print("no switch is left changed")
    if failures:
        raise MeasureError("; ".join(failures))


@app.command()
def probe(
    scenario: Name,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the buffer of a port of the switch by two independent methods.

    The first method, incast, finds the largest event that arrives without a drop, with static
    windows of the event's size. A closed form gives the peak occupancy of the port. The second,
    bursts by RFC 9004, finds the longest sequence of back-to-back packets from one host that
    arrives without a drop. Both methods work with `measure.lab` and with a device under test.

    \b
    Example:
      daqloom lab probe lab-rack --set network.switch.tor.model=drop-tail \\
          --set network.switch.tor.port_limit="60 kB"
    """
    system = load(scenario, set_ or ())
    with staged_progress(
        f"probing {system.name}", quiet=quiet, at_once="the incast begins"
    ) as report:
        found = run_probe.probe(system.scenario, lambda share, what: report(share, what, what))
    if json:
        print_json({"schema": 1, **{name: asdict(each) for name, each in found.items()}})
        return
    _print(found)


def _print(found: dict[str, run_probe.Estimate]) -> None:
    rows = [
        [name, with_unit(each.buffer_bytes, "B"), f"{each.tested}", each.how]
        for name, each in found.items()
    ]
    print_table(["probe", "buffer of a port", "tested", "from"], rows)

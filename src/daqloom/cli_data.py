"""The `daqloom data` commands."""

from __future__ import annotations

import json as json_
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daqloom.cli_options import Json, Name, Set
from daqloom.console import FAILED, fail, plain_failures, progress
from daqloom.metrics import for_people

if TYPE_CHECKING:
    from daqloom.data.check import Checked
    from daqloom.data.files import Kind
    from daqloom.data.inspect import Seen

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Event data: files of multi-fragment packets (MFPs) and multi-event packets (MEPs).",
)


@app.command()
def generate(
    scenario: Name,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the files.")
    ],
    mfps: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="MFPs in each file.")
    ] = 10,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=2**63 - 1, help="Seed of the sizes, in place of run.seed."
        ),
    ] = None,
    set_: Set = None,
) -> None:
    """Write a file of MFPs for each source of a scenario: each stream of each readout unit.

    Sizes follow [fragments]; fragments carry a pattern that `daqloom data check` knows, so that
    every byte can be checked, here and after they have been built into events. Files are named
    source-0.mfp, source-1.mfp, …, by source id.

    \b
    Examples:
      daqloom data generate lhcb-10-percent -o data --mfps 2
      daqloom data generate mine.toml -o data --set fragments.packing=1000 --seed 7
    """
    with plain_failures("files that are complete stay in the folder"):
        from daqloom.data.generated import generators, write_files
        from daqloom.scenario import load_system

        sources = generators(load_system(scenario, set_ or ()), seed)
        with progress(f"writing {len(sources)} files") as show:
            paths = write_files(sources, output, mfps, show)
        total = for_people("bytes", sum(path.stat().st_size for path in paths))
        events = mfps * sources[0].packing
        print(f"{output}: {len(paths)} files of {mfps} MFPs each, {events:,} events, {total}")


@app.command("inspect")
def inspect_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of MFPs or of MEPs.")],
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Packets to list; totals are of all.")
    ] = 20,
    json: Json = False,
) -> None:
    """List the packets of a file: source, first event, fragments, bytes, sizes; and the totals.

    Of a MEP: its number, first event, MFPs and how many are missing. A file that is damaged is
    listed up to there, and the place is named.

    \b
    Examples:
      daqloom data inspect data/source-0.mfp
      daqloom data inspect run.mep --limit 5 --json
    """
    with plain_failures(), _readable(file):
        from daqloom.data.inspect import inspect_file

        kind, seen = inspect_file(file)
        listed: list[Seen] = []
        totals = _Totals()
        damage = None
        try:
            for each in seen:
                totals.add(each)
                if len(listed) < limit:
                    listed.append(each)
        except ValueError as error:
            damage = str(error)
        if json:
            record = {"file": str(file), "kind": kind, "packets": [s.record() for s in listed]}
            print(json_.dumps(record | {"totals": totals.record(), "damage": damage}))
        else:
            _print_packets(kind, listed, totals)
        if damage is not None:
            fail(damage, FAILED)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Of MFPs or of MEPs.")],
    generated: Annotated[
        bool,
        typer.Option(
            "--generated",
            help="All fragments must be generated ones. Without it, a file in which none is "
            "recognised counts as recorded data, of which only the structure is checked.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check that files are whole, and generated fragments what they were, byte for byte.

    Structure: every packet decodes, nothing is cut off, and every MFP of a MEP is of its source and
    its events. Fragments that daqloom generated are recognised; then a flipped byte of any of them
    is named by file, offset, source and event.

    Exit codes: 0 all whole, 1 damaged, 2 no such file or no file of packets.

    \b
    Examples:
      daqloom data check data/*.mfp
      daqloom data check run.mep --generated --json
    """
    with plain_failures():
        from daqloom.data.check import check_file

        results: list[Checked] = []
        with progress(f"checking {len(files)} files") as show:
            for file in files:
                share = _share_of(show, len(results), len(files))
                with _readable(file):
                    results.append(check_file(file, generated=generated, progress=share))
        if json:
            print(json_.dumps({"files": [each.record() for each in results]}))
        else:
            _print_checked(results)
        if any(each.fault_count for each in results):
            raise typer.Exit(FAILED)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """What is no file of packets is bad input."""
    from daqloom.scenario.errors import ScenarioError

    try:
        yield
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ScenarioError(
            f"cannot read {file}: {reason}; give a file of MFPs (.mfp) or MEPs (.mep)"
        ) from None


class _Totals:
    def __init__(self) -> None:
        self.packets = self.events = self.parts = self.missing = self.nbytes = 0
        self.part_bytes = 0.0

    def add(self, seen: Seen) -> None:
        self.packets += 1
        self.events += seen.events
        self.parts += seen.parts
        self.missing += seen.missing
        self.nbytes += seen.nbytes
        self.part_bytes += seen.mean * seen.parts

    def record(self) -> dict[str, int]:
        return {
            "packets": self.packets,
            "events": self.events,
            "parts": self.parts,
            "missing": self.missing,
            "nbytes": self.nbytes,
            "part_bytes": round(self.part_bytes),
        }


def _print_packets(kind: Kind, seen: list[Seen], totals: _Totals) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    of_mfps = kind == "mfp"
    heads = ["MFP", "source", "first event", "fragments", "size"]
    if not of_mfps:
        heads = ["MEP", "first event", "MFPs", "missing", "size"]
    heads += ["least", "mean", "most"]
    table = Table(
        *(Column(head, justify="right", no_wrap=True) for head in heads),
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
    )
    for each in seen:
        row = [each.number, each.source, each.first_event, each.parts]
        if not of_mfps:
            row = [each.number, each.first_event, each.parts, each.missing]
        sizes = [each.nbytes, each.smallest, each.mean, each.largest]
        table.add_row(*map(str, row), *(for_people("bytes", size) for size in sizes))
    if seen:
        Console(highlight=False).print(table)
    if len(seen) < totals.packets:
        print(f"and {totals.packets - len(seen):,} more (--limit)")
    parts = "fragments" if of_mfps else "MFPs"
    missing = f", {totals.missing:,} missing" if totals.missing else ""
    print(
        f"{totals.packets:,} {'MFPs' if of_mfps else 'MEPs'}, {totals.events:,} events, "
        f"{totals.parts:,} {parts}{missing}; {for_people('bytes', totals.nbytes)}, of which "
        f"{for_people('bytes', round(totals.part_bytes))} in {parts}"
    )


def _share_of(show: Callable[[float], None], done: int, count: int) -> Callable[[float], None]:
    return lambda share: show((done + share) / count)


def _print_checked(results: list[Checked]) -> None:
    whole = [each for each in results if not each.fault_count]
    for each in results:
        if each.fault_count:
            _print_damage(each)
    generated = sum(each.is_generated for each in whole)
    missing = sum(each.missing for each in whole)
    print(
        f"{len(whole)} of {len(results)} files whole: "
        f"{sum(each.packets for each in whole):,} packets, "
        f"{for_people('bytes', sum(each.nbytes for each in whole))}"
        + (f", {missing:,} MFPs missing" if missing else "")
        + f"; generated fragments checked byte for byte in {generated}"
    )


def _print_damage(checked: Checked) -> None:
    read = f"{checked.packets:,} packets, {for_people('bytes', checked.nbytes)}"
    count = f"{checked.fault_count:,} {'faults' if checked.fault_count > 1 else 'fault'}"
    print(f"{checked.file}: damaged, {count} in {read}")
    for fault in checked.faults:
        where = f"  byte {fault.offset}"
        if fault.source is not None:
            where += f", source {fault.source}, event {fault.event}"
        print(f"{where}: {fault.reason}")
    if checked.fault_count > len(checked.faults):
        print(f"  and {checked.fault_count - len(checked.faults):,} more")

"""The `daqloom data` commands."""

from __future__ import annotations

import json as json_
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from daqloom.base import lazy
from daqloom.base.words import plural, printable
from daqloom.cli.app import group
from daqloom.cli.console import data
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.terminal import BAD_INPUT, FAILED, fail, progress
from daqloom.cli.options import Json, Name, Quiet, Set, argument, flag, option
from daqloom.results.metrics import with_unit

with lazy.imports():
    from daqloom import data as event_data
    from daqloom.data import files as data_files
    from daqloom.data import generator, inspect
    from daqloom.deployment import scenarios


app = group(
    help="Event data: files of multi-fragment packets (MFPs) and multi-event packets (MEPs)."
)


@app.command(saved="complete files stay in the folder")
def generate(
    scenario: Name,
    output: Annotated[Path, option("DIR", "Folder for the files.", "-o", "--output")],
    mfps: Annotated[int, option("N", "MFPs in each file.", min=1, max=10**9)] = 10,
    seed: Annotated[
        int | None, option("N", "Seed of the sizes, in place of run.seed.", min=0, max=2**63 - 1)
    ] = None,
    set_: Set = None,
    quiet: Quiet = False,
) -> None:
    """Write a file of MFPs for each source of a scenario: each stream of each readout unit.

    Sizes follow [event]; fragments have a pattern that `daqloom data check` verifies byte by
    byte, here and after event building. Files are named source-0.mfp, source-1.mfp, …, by source
    id.

    \b
    Examples:
      daqloom data generate lhcb-10-percent -o data --mfps 2
      daqloom data generate mine.toml -o data --set event.packing=1000 --seed 7
    """
    sources = generator.generators(scenarios.load(scenario, set_ or ()), seed)
    with progress(f"writing {len(sources)} files", quiet=quiet) as show:
        paths = generator.write_files(sources, output, mfps, show)
    total = with_unit(sum(path.stat().st_size for path in paths), "B")
    events = mfps * sources[0].packing
    where = printable(str(output))
    print(f"{where}: {len(paths)} files of {mfps} MFPs each, {events:,} events, {total}")


@app.command("inspect")
def inspect_(
    file: Annotated[Path, argument("FILE", "File of MFPs or of MEPs.")],
    limit: Annotated[
        int, option("N", "Number of packets to list; totals include all packets.", min=0)
    ] = 20,
    json: Json = False,
) -> None:
    """List the packets of a file: source, first event, fragments, bytes, sizes; and the totals.

    For a MEP: its number, first event, MFPs and the number of missing ones. Damaged parts are
    skipped, up to the next whole packet, and their positions are listed.

    Exit codes: 0 done, 1 damaged, 2 no such file or not a file of packets.

    \b
    Examples:
      daqloom data inspect data/source-0.mfp
      daqloom data inspect run.mep --limit 5 --json
    """
    with data.readable(file):
        skipped: list[data_files.DamagedPart] = []
        kind, packets = inspect.inspect_file(file, skipped.append)
        listed: list[inspect.PacketSummary] = []
        sums = Counter(packets=0, events=0, parts=0, missing=0, nbytes=0, part_bytes=0)
        damage = None
        try:
            for packet in packets:
                sums.update(
                    packets=1,
                    events=packet.events,
                    parts=packet.parts,
                    missing=packet.missing,
                    nbytes=packet.nbytes,
                    part_bytes=round(packet.mean * packet.parts),
                )
                if len(listed) < limit:
                    listed.append(packet)
        except ValueError as error:
            damage = str(error)
        left_out = sum(packet.nbytes for packet in skipped)
        if skipped:
            damage = skipped[0].reason
        if json:
            record = {"file": str(file), "kind": kind, "packets": [s.record() for s in listed]}
            places = {"skipped": [asdict(packet) for packet in skipped], "skipped_bytes": left_out}
            print(json_.dumps(record | {"totals": sums, "damage": damage} | places))
        else:
            _print_packets(kind, listed, sums)
        if skipped:
            count = plural(len(skipped), "place was", "places were")
            fail(f"{damage} ({count} skipped, {left_out:,} bytes)", FAILED)
        if damage is not None:
            fail(damage, FAILED)


@app.command()
def check(
    paths: Annotated[
        list[Path], argument("FILE|FOLDER…", "Files of MFPs or of MEPs, or folders of a recording.")
    ],
    generated: Annotated[
        bool,
        flag(
            "Require that all fragments are generated. By default, files without generated "
            "fragments are recorded data, of which only the structure is checked.",
            "--generated",
        ),
    ] = False,
    complete: Annotated[
        bool,
        flag(
            "For folders: gaps are failures. By default they are only reported, because a run "
            "may discard events or build them without some sources.",
            "--complete",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that files are intact, and that a recording contains each event exactly once.

    Structure: each packet can be decoded, is complete, and has the checksum in the file's index, if
    there is one; each MFP of a MEP has the right source and events. Damaged parts are skipped, up
    to the next whole packet, and counted. Fragments generated by daqloom are recognised; a wrong
    byte in them is reported with file, offset, source and event.

    All folders together are one recording. A duplicate is an event that a source has twice, in any
    files. A gap is an event between the first and the last one that is lost (no source has it) or
    incomplete (some sources of the recording lack it).

    Exit codes: 0 intact without duplicates, 1 damaged, with duplicates or (--complete) with gaps,
    2 no such file or not a file of packets.

    \b
    Examples:
      daqloom data check data/*.mfp
      daqloom data check recorded/
      daqloom data check run.mep --generated --json
    """
    files, recording = data.check_paths(paths, generated, quiet=quiet)
    if json:
        record = {
            "files": [each.record() for each in files],
            "recording": recording.record() if recording else None,
        }
        print(json_.dumps(record))
    else:
        data.print_checked(files)
        if recording:
            data.print_recording(recording)
    wrong = any(each.fault_count for each in files)
    if recording:
        wrong |= not recording.is_right or (complete and not recording.is_complete)
    if wrong:
        raise typer.Exit(FAILED)


def _print_packets(
    kind: data_files.Kind, packets: list[inspect.PacketSummary], sums: Counter[str]
) -> None:
    of_mfps = kind == "mfp"
    heads = ["MFP", "source", "first event", "fragments", "size"]
    if not of_mfps:
        heads = ["MEP", "first event", "MFPs", "missing", "size"]
    heads += ["least", "mean", "most"]
    rows = []
    for each in packets:
        row = [each.number, each.source, each.first_event, each.parts]
        if not of_mfps:
            row = [each.number, each.first_event, each.parts, each.missing]
        sizes = [each.nbytes, each.smallest, each.mean, each.largest]
        rows.append([*map(str, row), *(with_unit(size, "B") for size in sizes)])
    if packets:
        print_table(heads, rows, framed=True)
    if len(packets) < sums["packets"]:
        print(f"and {sums['packets'] - len(packets):,} more (--limit)")
    parts = "fragments" if of_mfps else "MFPs"
    missing = f", {sums['missing']:,} missing" if sums["missing"] else ""
    print(
        f"{sums['packets']:,} {'MFPs' if of_mfps else 'MEPs'}, {sums['events']:,} events, "
        f"{sums['parts']:,} {parts}{missing}; {with_unit(sums['nbytes'], 'B')}, of which "
        f"{with_unit(sums['part_bytes'], 'B')} in {parts}"
    )


@app.command()
def recover(
    folders: Annotated[list[Path], argument("FOLDER…", "Folder of a recording.")],
    drop: Annotated[
        bool, flag("Delete unfinished files instead of finishing them.", "--drop")
    ] = False,
    list_: Annotated[
        bool, flag("List the files with their sizes, and change nothing.", "--list")
    ] = False,
    json: Json = False,
) -> None:
    """Finish the files NAME.part of a recording, which a killed unit left unfinished.

    Each file is truncated after its last complete packet, written to disk and renamed, so that
    `daqloom data check` and a replay accept it. A file without any complete packet is deleted. A
    file that a running unit still writes is left alone.

    Exit codes: 0 done, 1 some files were skipped because a unit still writes them or another file
    has their name, 2 no such folder.

    \b
    Examples:
      daqloom data recover recorded/ --list
      daqloom data recover recorded/
      daqloom data recover recorded/ --drop --json
    """
    if drop and list_:
        fail("--drop and --list exclude each other; give one of them", BAD_INPUT)
    found: list[event_data.UnfinishedFile | event_data.Recovery] = []
    with progress(f"recovering {', '.join(map(str, folders))}", quiet=list_) as show:
        for folder in folders:
            with data.changeable(folder):
                found += (
                    event_data.unfinished_files(folder)
                    if list_
                    else event_data.recover(folder, drop=drop, progress=show)
                )
    if json:
        print(json_.dumps({"files": [asdict(each) for each in found]}))
    else:
        data.print_unfinished(found)
    if any(isinstance(each, event_data.Recovery) and each.is_left for each in found):
        raise typer.Exit(FAILED)

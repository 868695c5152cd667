"""Checks and recovery of recordings and packet files, with their terminal output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from daqloom.base import lazy
from daqloom.base.output import OutputError
from daqloom.base.words import plural, printable, reason_of
from daqloom.cli.console.terminal import progress
from daqloom.results.metrics import with_unit
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from daqloom import data as event_data
    from daqloom.data import check, coverage
    from daqloom.data import recording as data_recording


_Range = TypeVar("_Range", bound="coverage.EventRange")


def check_paths(
    paths: Sequence[Path], generated: bool, *, quiet: bool = False
) -> tuple[list[check.FileCheck], data_recording.CheckedRecording | None]:
    """Check all files, also those in folders, and the recording that the folders form. Raises
    ScenarioError for a path that cannot be read or has nothing to check."""
    folders = [path for path in paths if path.is_dir()]
    single = [path for path in paths if path not in folders]
    checked: list[check.FileCheck] = []
    recording = None
    what = f"checking {', '.join(map(str, folders)) or f'{len(single)} files'}"
    with progress(what, quiet=quiet) as show:
        for file in single:
            share = _share_of(show, len(checked), len(single) + len(folders))
            with readable(file):
                checked.append(check.check_file(file, generated=generated, progress=share))
        if folders:
            with readable(folders[0]):
                recording = data_recording.check_recording(
                    folders, generated=generated, progress=show
                )
            checked += recording.files
    return checked, recording


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turn errors on reading a file into a ScenarioError (bad input)."""
    try:
        yield
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    except BrokenPipeError:  # of the output
        raise
    except OSError as error:
        raise ScenarioError(
            f"cannot read {file}: {reason_of(error)}; give a file of MFPs (.mfp) or MEPs (.mep)"
        ) from None


def _share_of(show: Callable[[float], None], done: int, count: int) -> Callable[[float], None]:
    return lambda share: show((done + share) / count)


def print_checked(results: list[check.FileCheck]) -> None:
    """Print the damage of each file and the number of intact files."""
    whole = [file for file in results if not file.fault_count]
    for file in results:
        if file.fault_count:
            _print_damage(file)
    generated = sum(file.is_generated for file in whole)
    missing = sum(file.missing for file in whole)
    print(
        f"{len(whole)} of {len(results)} files intact: "
        f"{sum(file.packets for file in whole):,} packets, "
        f"{with_unit(sum(file.nbytes for file in whole), 'B')}"
        + (f", {missing:,} MFPs missing" if missing else "")
        + f"; generated fragments checked byte for byte in {generated}"
    )


def _name(file: object) -> str:
    return printable(str(file))


def _print_damage(checked: check.FileCheck) -> None:
    read = f"{checked.packets:,} packets, {with_unit(checked.nbytes, 'B')}"
    print(f"{_name(checked.file)}: damaged, {plural(checked.fault_count, 'fault')} in {read}")
    for fault in checked.faults:
        where = f"  byte {fault.offset}"
        if fault.source is not None:
            where += f", source {fault.source}, event {fault.event}"
        print(f"{where}: {fault.reason}")
    if checked.fault_count > len(checked.faults):
        print(f"  and {checked.fault_count - len(checked.faults):,} more")
    if checked.skipped:
        places = plural(checked.skipped, "place")
        print(f"  skipped {checked.skipped_bytes:,} bytes in {places}")


def print_recording(recording: data_recording.CheckedRecording) -> None:
    """Print the events of a recording, its duplicates and its gaps."""
    gaps = recording.gaps
    if recording.span is None:
        print("no events")
        return
    print(
        f"{gaps.events:,} events, {recording.span}, of {plural(recording.sources, 'source')}: "
        f"{recording.mfps:,} MFPs"
    )
    if not recording.duplicates:
        print("duplicates: none")
    else:
        print(f"duplicates: {recording.duplicates:,} (source, event) pairs occur more than once")
        _print_ranges(
            recording.duplicate_examples,
            lambda each: f"source {each.source}, again in {_name(each.file)}",
        )
    if recording.is_complete:
        print("gaps: none; every source has all events in between")
    if gaps.lost_events:
        print(f"gaps: {gaps.lost_events:,} events are lost: no source has them")
        _print_ranges(gaps.lost, lambda each: "")
    if gaps.incomplete_events:
        print(
            f"gaps: {gaps.incomplete_events:,} events are incomplete: "
            f"{gaps.missing:,} (source, event) pairs are missing"
        )
        _print_ranges(gaps.incomplete, lambda each: f"without {_sources(each.missing_sources)}")
    if recording.unfinished:
        count = len(recording.unfinished)
        print(
            f"{plural(count, 'unfinished file was', 'unfinished files were')} not read: "
            f"{_name(recording.unfinished[0])}{', …' if count > 1 else ''}"
        )


def _print_ranges(ranges: Sequence[_Range], about: Callable[[_Range], str]) -> None:
    for each in ranges:
        what = about(each)
        print(f"  {'event' if each.first == each.last else 'events'} {each}{what and ': '}{what}")


SOURCES_SHOWN = 8


def _sources(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:SOURCES_SHOWN]))
    more = f" and {len(numbers) - SOURCES_SHOWN} more" if len(numbers) > SOURCES_SHOWN else ""
    return f"{'sources' if len(numbers) > 1 else 'source'} {shown}{more}"


def print_unfinished(found: Sequence[event_data.UnfinishedFile | event_data.Recovery]) -> None:
    """Print the unfinished files of a recording or, after a recovery, the outcome for each."""
    for each in found:
        print(f"{_name(each.file)}: {_summary(each)}")
    if not found:
        print("no unfinished files")


def _summary(done: event_data.UnfinishedFile | event_data.Recovery) -> str:
    size = with_unit(done.nbytes, "B")
    if isinstance(done, event_data.UnfinishedFile):
        return f"{size}, in use by a unit" if done.in_use else size
    match done.outcome:
        case "finished":
            cut = done.nbytes - done.kept_bytes
            rest = f", {with_unit(cut, 'B')} cut off" if cut else ""
            return f"finished as {done.finished_as}, {done.packets:,} packets of {size}{rest}"
        case "dropped":
            return f"deleted, {size}"
        case "in use":
            return f"left alone, {size}: a unit still writes it; stop the run first"
    return f"left alone, {size}: {done.finished_as} already exists; move it away first"


@contextmanager
def changeable(folder: Path) -> Iterator[None]:
    """Report a missing folder as bad input, and an error during the recovery as a failure."""
    if not folder.is_dir():
        raise ScenarioError(f"{folder} is not a folder; give one with the recording of a run")
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot recover {error.filename or folder}: {reason_of(error)}"
        ) from None

"""Generators of fragments for the sources of a scenario; every payload byte can be checked."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from daqloom import _engine
from daqloom.base import lazy
from daqloom.base.output import OutputError, written_whole
from daqloom.base.words import reason_of
from daqloom.configuration.settings import enumerator
from daqloom.scenario import Scenario
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from daqloom.deployment import fabric_system

ALIGN = 2


def generators(scenario: Scenario, seed: int | None = None) -> list[_engine.MfpGenerator]:
    """Return a generator for each source, ordered by unit and stream; the list index is the source
    id. `generate(event)` of a generator returns the MFP that begins with that event. Fragment sizes
    follow the table [event] and `seed` (default: run.seed), with the mean size for each source
    rounded to whole bytes. Raises ScenarioError if a value does not fit into an MFP."""
    if scenario.protocol.has_arrivals:
        raise ScenarioError(
            f"{scenario.name} pulls fragments, and has no multi-fragment packets; give a "
            "scenario with another building.protocol, such as lhcb-10-percent"
        )
    means = [
        round(each / scenario.event.packing)
        for each in fabric_system.fabric_system(scenario).mfp_bytes
    ]
    if len(means) > _engine.MOST_MEP_STREAMS:
        raise ScenarioError(
            f"{scenario.name} has {len(means)} sources; source ids have 16 bits: use fewer nodes "
            f"or streams, at most {_engine.MOST_MEP_STREAMS} sources"
        )
    check_packets(scenario.event.packing, means)
    seed = scenario.run.seed if seed is None else seed
    kind = enumerator(_engine.FragmentSizes, scenario.event.fragment_sizes)
    tables = {mean: _engine.PatternSizes(kind, mean, seed) for mean in set(means)}
    return [
        _engine.MfpGenerator(source, scenario.event.packing, ALIGN, tables[mean])
        for source, mean in enumerate(means)
    ]


def check_packets(packing: int, means: Sequence[int]) -> None:
    """Raise ScenarioError if `packing` or a mean fragment size (B) exceeds the limits of an MFP."""
    if packing > _engine.MOST_MFP_FRAGMENTS:
        raise ScenarioError(
            f"event.packing = {packing}: an MFP counts its fragments in 16 bits; give at most "
            f"{_engine.MOST_MFP_FRAGMENTS}"
        )
    if max(means) > _engine.LARGEST_MEAN_FRAGMENT_BYTES:
        raise ScenarioError(
            f"event.fragment_size: a source's fragments have {max(means)} bytes on average; an MFP "
            f"stores their sizes in 16 bits: give at most {_engine.LARGEST_MEAN_FRAGMENT_BYTES}"
        )


def write_files(
    sources: Sequence[_engine.MfpGenerator],
    folder: Path,
    mfps: int,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Path]:
    """Write a file for each source with `mfps` successive MFPs, starting at event 0. A file appears
    only when complete. Raises OutputError if the folder is unwritable or too full."""
    needed = sum(mfps * each.bytes_of(0) for each in sources)
    _check_room(folder, needed)
    paths = []
    width = len(str(len(sources) - 1))
    for done, source in enumerate(sources):
        path = folder / f"source-{source.source_id:0{width}}.mfp"
        with written_whole(path) as scratch, scratch.open("wb") as file:
            for number in range(mfps):
                file.write(source.generate(number * source.packing))
                progress((done + (number + 1) / mfps) / len(sources))
        paths.append(path)
    return paths


def _check_room(folder: Path, needed: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise OutputError(
            f"cannot write {folder}: {reason_of(error)}; give a folder that can be written"
        ) from None
    if needed > free:
        raise OutputError(
            f"{folder} has {free / 1e9:.3g} GB left, and the files take {needed / 1e9:.3g} GB; "
            "give fewer MFPs or another folder"
        )

"""Checks of a recording, the files that the units of a run wrote: every event must occur once."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daqloom.data.check import FileCheck, check_file
from daqloom.data.coverage import Coverage, Duplicate, EventRange, Gaps
from daqloom.data.files import ENDINGS
from daqloom.data.inspect import inspect_file

UNFINISHED = ".part"
"""Ending of a file that a unit still writes or has left unfinished."""


@dataclass(frozen=True)
class CheckedRecording:
    """Findings of a check over all files of a recording. A (source, event) pair that occurs again
    is a *duplicate*. An event between the first and the last is *lost* if no source has it, and
    *incomplete* if only some sources have it. All are counted; only the first few are listed."""

    folders: list[str]
    files: list[FileCheck]
    unfinished: list[str]
    """Files that were not read because a unit still writes them or was killed."""
    sources: int
    span: EventRange | None
    """Range from the first to the last event; None without events."""
    duplicates: int
    duplicate_examples: list[Duplicate]
    gaps: Gaps

    @property
    def mfps(self) -> int:
        """Number of MFPs in all files."""
        return sum(each.mfps for each in self.files)

    @property
    def fault_count(self) -> int:
        """Damaged places in all files."""
        return sum(each.fault_count for each in self.files)

    @property
    def is_right(self) -> bool:
        """Whether no file is damaged and no event of a source occurs twice."""
        return not self.fault_count and not self.duplicates

    @property
    def is_complete(self) -> bool:
        """Whether every source has every event, from the first to the last."""
        return not self.gaps.lost_events and not self.gaps.missing

    def record(self) -> dict[str, Any]:
        """Return a JSON object, without the files."""
        gaps, span = self.gaps, self.span
        return {
            "folders": self.folders,
            "files": len(self.files),
            "unfinished": self.unfinished,
            "sources": self.sources,
            "mfps": self.mfps,
            "events": gaps.events,
            "first_event": span.first if span else None,
            "last_event": span.last if span else None,
            "fault_count": self.fault_count,
            "duplicates": self.duplicates,
            "duplicate_examples": [asdict(each) for each in self.duplicate_examples],
            "lost_events": gaps.lost_events,
            "lost_examples": [asdict(each) for each in gaps.lost],
            "incomplete_events": gaps.incomplete_events,
            "missing_fragments": gaps.missing,
            "incomplete_examples": [asdict(each) for each in gaps.incomplete],
            "is_right": self.is_right,
            "is_complete": self.is_complete,
        }


def check_recording(
    folders: str | Path | Iterable[str | Path],
    *,
    generated: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> CheckedRecording:
    """Check all .mfp and .mep files of one run; the folders of several machines form one recording.
    `check_file` checks each file. Raises OSError if a folder or file cannot be read, ValueError if
    a folder has no such file."""
    listed = [Path(each) for each in ([folders] if isinstance(folders, str | Path) else folders)]
    paths, unfinished = _files_of(listed)
    coverage = Coverage()
    total = max(sum(path.stat().st_size for path in paths), 1)
    done = 0
    files = []
    for path in sorted(paths, key=_first_event):
        coverage.begin_file(str(path))
        size = path.stat().st_size
        part = _part(progress, done / total, size / total)
        files.append(check_file(path, generated=generated, progress=part, visit=coverage.add))
        done += size
    return CheckedRecording(
        [str(folder) for folder in listed],
        sorted(files, key=lambda each: each.file),
        [str(path) for path in unfinished],
        len(coverage.sources),
        coverage.span(),
        *coverage.duplicates(),
        coverage.gaps(),
    )


def _files_of(folders: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files to read, without repetitions by links, and the unfinished files."""
    paths: dict[Path, Path] = {}
    unfinished: set[Path] = set()
    for folder in folders:
        entries = sorted(folder.iterdir())
        found = {path for path in entries if path.suffix in ENDINGS and path.is_file()}
        left = {path for path in entries if path.suffix == UNFINISHED}
        if not found:
            hint = f"; it has {len(left)} unfinished files" if left else ""
            raise ValueError(f"{folder} has no files that end in .mfp or .mep{hint}")
        paths |= {path.resolve(): path for path in found}
        unfinished |= left
    return sorted(paths.values()), sorted(unfinished)


def _first_event(path: Path) -> int:
    """Sort key: reading in the order of events fills gaps early, so that few intervals are
    stored."""
    try:
        return next((each.first_event for each in inspect_file(path, lambda _: None)[1]), 0)
    except ValueError:
        return 0


def _part(progress: Callable[[float], None], start: float, share: float) -> Callable[[float], None]:
    return lambda done: progress(start + share * done)

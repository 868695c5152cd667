"""Whether a recording has every event once: over all files that the units of a run have written."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daqloom.data.check import Checked, check_file
from daqloom.data.coverage import Coverage, Duplicate, EventRange, Gaps
from daqloom.data.files import ENDINGS

UNFINISHED = ".part"
"""Ending of a file that a unit is writing, or did not finish."""


@dataclass(frozen=True)
class CheckedRecording:
    """What the files of a recording have together.

    A *duplicate* is a (source, event) pair that is there again. An event is *lost* if no source has
    it, though it is between the first and the last event of the recording; *incomplete* if some
    sources have it and others, of those in the recording, do not. Of each only the first few are
    listed; all are counted.
    """

    folders: list[str]
    files: list[Checked]
    unfinished: list[str]
    """Files that were not read: a unit was killed, or still writes them."""
    sources: int
    span: EventRange | None
    """From the first to the last event; None where there is none."""
    duplicates: int
    duplicate_examples: list[Duplicate]
    gaps: Gaps

    @property
    def mfps(self) -> int:
        """Number of MFPs in all files."""
        return sum(each.mfps for each in self.files)

    @property
    def fault_count(self) -> int:
        """Damaged places in all files; `files` tells which."""
        return sum(each.fault_count for each in self.files)

    @property
    def is_right(self) -> bool:
        """Nothing is damaged and nothing is there twice."""
        return not self.fault_count and not self.duplicates

    @property
    def is_complete(self) -> bool:
        """Every source has every event, from the first to the last."""
        return not self.gaps.lost_events and not self.gaps.missing

    def record(self) -> dict[str, Any]:
        """For JSON, without the files."""
        return {
            "folders": self.folders,
            "files": len(self.files),
            "unfinished": self.unfinished,
            "sources": self.sources,
            "mfps": self.mfps,
            "events": self.gaps.events,
            "first_event": self.span.first if self.span else None,
            "last_event": self.span.last if self.span else None,
            "fault_count": self.fault_count,
            "duplicates": self.duplicates,
            "duplicate_examples": [asdict(each) for each in self.duplicate_examples],
            "lost_events": self.gaps.lost_events,
            "lost_examples": [asdict(each) for each in self.gaps.lost],
            "incomplete_events": self.gaps.incomplete_events,
            "missing_fragments": self.gaps.missing,
            "incomplete_examples": [asdict(each) for each in self.gaps.incomplete],
            "is_right": self.is_right,
            "is_complete": self.is_complete,
        }


def check_recording(
    folders: str | Path | Iterable[str | Path],
    *,
    generated: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> CheckedRecording:
    """Reads all .mfp and .mep files in the folders, which one run has written: on several machines,
    say. Each file is checked as `check_file` does. Raises OSError where a folder or file cannot be
    read, ValueError where a folder has no such file."""
    given = [folders] if isinstance(folders, str | Path) else folders
    listed = [Path(folder) for folder in given]
    paths, unfinished = _files_of(listed)
    coverage = Coverage()
    total = max(sum(path.stat().st_size for path in paths), 1)
    done = 0
    files = []
    for path in sorted(paths, key=_first_event):
        coverage.begin_file(str(path))
        size = path.stat().st_size
        files.append(
            check_file(
                path,
                generated=generated,
                progress=_part(progress, done / total, size / total),
                seen=coverage.add,
            )
        )
        done += size
    duplicates, examples = coverage.duplicates()
    return CheckedRecording(
        folders=[str(folder) for folder in listed],
        files=sorted(files, key=lambda each: each.file),
        unfinished=[str(path) for path in unfinished],
        sources=len(coverage.sources),
        span=coverage.span(),
        duplicates=duplicates,
        duplicate_examples=examples,
        gaps=coverage.gaps(),
    )


def _files_of(folders: list[Path]) -> tuple[list[Path], list[Path]]:
    """Those to read, and those unfinished."""
    paths: dict[Path, Path] = {}  # however it is called, a file is read once
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
    """In this order, what is not yet there is filled soon: little has to be kept."""
    from daqloom.data.inspect import inspect_file

    try:
        return next((seen.first_event for seen in inspect_file(path, lambda _: None)[1]), 0)
    except ValueError:
        return 0


def _part(progress: Callable[[float], None], begin: float, share: float) -> Callable[[float], None]:
    return lambda done: progress(begin + share * done)

"""Recovery of a recording's files that a unit left unfinished when it was killed or the disk was
full. A unit writes to NAME.part, which it locks until the file is complete. An abandoned file has
complete packets and at most one truncated packet at its end. Damaged packets before the end are
kept, and readers skip them."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from daqloom.data.files import ENDINGS, packets
from daqloom.data.recording import UNFINISHED


@dataclass(frozen=True)
class UnfinishedFile:
    """A file that is not complete."""

    file: str
    nbytes: int
    in_use: bool
    """Whether a process still writes it."""


@dataclass(frozen=True)
class Recovery:
    """Outcome for an unfinished file."""

    file: str
    nbytes: int
    outcome: Literal["finished", "dropped", "in use", "name taken"]
    """"finished": truncated and renamed. "dropped": deleted, also if no packet is complete. "in
    use", "name taken": file unchanged."""
    finished_as: str | None = None
    packets: int = 0
    kept_bytes: int = 0
    """Size of the file after truncation behind the last complete packet (B)."""

    @property
    def is_left(self) -> bool:
        """Whether the file is unchanged."""
        return self.outcome in ("in use", "name taken")


def unfinished_files(folder: str | Path) -> list[UnfinishedFile]:
    """Return the unfinished files of a folder, by name. Raises OSError."""
    return [
        UnfinishedFile(str(path), os.fstat(file).st_size, in_use)
        for path, file, in_use in _parts(Path(folder))
    ]


def recover(
    folder: str | Path,
    *,
    drop: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Recovery]:
    """Truncate each abandoned file behind its last complete packet and rename it; with `drop`,
    delete the file. Raises OSError."""
    total = max(sum(each.nbytes for each in unfinished_files(folder)), 1)
    done: list[Recovery] = []
    for path, file, in_use in _parts(Path(folder)):
        done.append(_recover_file(path, file, drop, in_use))
        progress(min(1.0, sum(each.nbytes for each in done) / total))
    return done


def _recover_file(path: Path, file: int, drop: bool, in_use: bool) -> Recovery:
    size = os.fstat(file).st_size
    if in_use:
        return Recovery(str(path), size, "in use")
    name = path.with_suffix("")
    if not drop and name.exists():
        return Recovery(str(path), size, "name taken", str(name))
    count = kept = 0
    with suppress(ValueError):  # no complete packet
        for offset, packet in () if drop else packets(path, ENDINGS[name.suffix], lambda _: None):
            count, kept = count + 1, offset + len(packet)
    if not count:
        path.unlink()
        return Recovery(str(path), size, "dropped")
    os.ftruncate(file, kept)
    os.fsync(file)
    path.rename(name)
    _sync(name.parent)
    return Recovery(str(path), size, "finished", str(name), count, kept)


def _parts(folder: Path) -> Iterator[tuple[Path, int, bool]]:
    """Yield each regular file NAME.mfp.part or NAME.mep.part as (path, descriptor, whether a
    process writes it). The file is locked while the caller uses it."""
    for path in sorted(folder.iterdir()):
        if path.suffix != UNFINISHED or path.with_suffix("").suffix not in ENDINGS:
            continue
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):  # finished meanwhile, or a symlink
                continue
            raise
        try:
            in_use = not _lock(file)
            if stat.S_ISREG(os.fstat(file).st_mode) and _is_at(path, file):
                yield path, file, in_use
        finally:
            os.close(file)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Return whether the open file still has this path; its unit may have renamed it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

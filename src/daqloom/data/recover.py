"""Files of a recording that a unit did not finish, as it was killed or the disk failed.

A file is called NAME.part, and locked by its unit, until it is complete. What a process that ended
left there are whole packets and at most one that is cut off. What a damaged disk left out between
them stays, and readers skip it.
"""

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
class Unfinished:
    """A file that is not complete."""

    file: str
    nbytes: int
    in_use: bool
    """A process still writes it."""


@dataclass(frozen=True)
class Recovered:
    """What has become of an unfinished file."""

    file: str
    nbytes: int
    outcome: Literal["finished", "dropped", "in use", "name taken"]
    """Dropped, too, if it had no whole packet. The last two are left as they were."""
    finished_as: str | None = None
    packets: int = 0
    kept_bytes: int = 0
    """Size of the whole packets that were kept (B); the rest was cut off."""

    @property
    def is_left(self) -> bool:
        """Whether nothing was done with it."""
        return self.outcome in ("in use", "name taken")


def unfinished(folder: str | Path) -> list[Unfinished]:
    """The files of the folder that are not complete, by name. Raises OSError."""
    return [
        Unfinished(str(path), os.fstat(file).st_size, in_use)
        for path, file, in_use in _parts(Path(folder))
    ]


def recover(
    folder: str | Path,
    *,
    drop: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Recovered]:
    """Cuts each file that no process writes any more behind its last whole packet, and gives it its
    name; with `drop` deletes it instead. Raises OSError."""
    total = max(sum(each.nbytes for each in unfinished(folder)), 1)
    done: list[Recovered] = []
    for path, file, in_use in _parts(Path(folder)):
        size = os.fstat(file).st_size
        done.append(
            Recovered(str(path), size, "in use") if in_use else _recovered(path, file, drop)
        )
        progress(min(1.0, sum(each.nbytes for each in done) / total))
    return done


def _recovered(path: Path, file: int, drop: bool) -> Recovered:
    size = os.fstat(file).st_size
    if drop:
        path.unlink()
        return Recovered(str(path), size, "dropped")
    name = path.with_suffix("")
    if name.exists():
        return Recovered(str(path), size, "name taken", str(name))
    count = kept = 0
    try:
        for offset, packet in packets(path, ENDINGS[name.suffix], lambda _: None):
            count, kept = count + 1, offset + len(packet)
    except ValueError:
        pass  # there is no whole packet
    if not count:
        path.unlink()
        return Recovered(str(path), size, "dropped")
    os.ftruncate(file, kept)
    os.fsync(file)
    path.rename(name)
    _sync(name.parent)
    return Recovered(str(path), size, "finished", str(name), count, kept)


def _parts(folder: Path) -> Iterator[tuple[Path, int, bool]]:
    """Regular files NAME.mfp.part and NAME.mep.part, each opened, and locked for as long as the
    caller looks at it; or true: a process writes it."""
    for path in sorted(folder.iterdir()):
        if path.suffix != UNFINISHED or path.with_suffix("").suffix not in ENDINGS:
            continue
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):  # finished meanwhile, or a link
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
    """Whether the file still has that name: its unit may just have finished it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

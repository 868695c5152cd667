"""State of a machine, from its /proc and /sys."""

import re
from dataclasses import dataclass
from pathlib import Path

from daqloom.scenario.schema.measure import cores

MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Machine:
    """Access to /proc and /sys below `root`; tests use another folder than /."""

    root: Path = Path("/")

    def text(self, path: str) -> str:
        """Return the stripped text of a file; empty if it cannot be read."""
        return self.content(path).decode(errors="replace").strip()

    def content(self, path: str) -> bytes:
        """Return the bytes of a file; none if it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(MOST_BYTES)
        except OSError:
            return b""

    def number(self, path: str) -> int | None:
        """Return the number in a file; None if it has none that is positive or 0."""
        text = self.text(path)
        return int(text) if re.fullmatch("[0-9]{1,9}", text) else None

    def chosen(self, path: str) -> str:
        """Return the selected word in brackets, as in "always [madvise] never"."""
        found = re.search(r"\[([^\]]+)\]", self.text(path))
        return found[1] if found else ""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            return sorted(entry.name for entry in (self.root / path).iterdir())
        except OSError:
            return []

    def cores(self, path: str) -> list[int]:
        """Return the cores in a list file such as "0-3,8"."""
        return cores(self.text(path))

    def memory(self, key: str) -> int | None:
        """Return a value of /proc/meminfo, in bytes, or in pages if the file has no unit."""
        found = re.search(rf"^{re.escape(key)}:\s+(\d+)( kB)?$", self.text("proc/meminfo"), re.M)
        return int(found[1]) * (1024 if found[2] else 1) if found else None

    def limit(self, name: str, *, hard: bool = False) -> float | None:
        """Return the soft or hard limit `name` of this process, such as "Max open files"; it may be
        infinite."""
        pattern = rf"^{re.escape(name)}\s+(\S+)\s+(\S+)"
        found = re.search(pattern, self.text("proc/self/limits"), re.M)
        if not found:
            return None
        limit = found[2 if hard else 1]
        return float("inf") if limit == "unlimited" else float(limit)

    def allowed_cores(self) -> list[int]:
        """Return the cores that this process may use."""
        status = self.text("proc/self/status")
        found = re.search(r"^Cpus_allowed_list:\s+(\S+)$", status, re.M)
        return cores(found[1]) if found else []

    def load(self) -> tuple[float, int]:
        """Return the mean number of programs that run or wait to run, over the last minute, and the
        number of cores (at least 1). An unknown mean is 0.0."""
        first = self.text("proc/loadavg").partition(" ")[0]
        number = float(first) if re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", first) else 0.0
        return number, max(1, len(self.cores("sys/devices/system/cpu/online")))

    def programs(self) -> set[str]:
        """Return the names of running programs, cut to 15 characters."""
        return {self.text(f"proc/{n}/comm") for n in self.names("proc") if n.isdigit()}

    def size_of_tmpfs(self, place: str) -> int | None:
        """Return the size of the tmpfs mounted at `place` (B); None if unknown."""
        pattern = rf"^\S+ {re.escape(place)} tmpfs \S*?\bsize=(\d+)([kmg]?)\b"
        found = re.search(pattern, self.text("proc/mounts"), re.M)
        return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]] if found else None

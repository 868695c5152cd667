"""What /proc and /sys of a machine say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from daqloom.scenario.measure import cores

MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Machine:
    """Read below `root`: another one than / is a copy, or made up."""

    root: Path = Path("/")

    def text(self, path: str) -> str:
        """Of a file, stripped; empty where it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(MOST_BYTES).decode(errors="replace").strip()
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """The first one in a file."""
        found = re.search(r"\d+", self.text(path))
        return int(found[0]) if found else None

    def chosen(self, path: str) -> str:
        """What stands in brackets: "always [madvise] never"."""
        found = re.search(r"\[([^\]]+)\]", self.text(path))
        return found[1] if found else ""

    def names(self, path: str) -> list[str]:
        """In a folder, sorted."""
        try:
            return sorted(entry.name for entry in (self.root / path).iterdir())
        except OSError:
            return []

    def cores(self, path: str) -> list[int]:
        """A list such as "0-3,8"."""
        return cores(self.text(path))

    def memory(self, key: str) -> int | None:
        """A line of /proc/meminfo: bytes, or pages where it counts these."""
        found = re.search(rf"^{re.escape(key)}:\s+(\d+)( kB)?$", self.text("proc/meminfo"), re.M)
        return int(found[1]) * (1024 if found[2] else 1) if found else None

    def limit(self, name: str) -> float | None:
        """The soft one of this process, such as "Max open files"; infinite: none."""
        found = re.search(rf"^{re.escape(name)}\s+(\S+)", self.text("proc/self/limits"), re.M)
        if not found:
            return None
        return float("inf") if found[1] == "unlimited" else float(found[1])

    def allowed_cores(self) -> list[int]:
        """Those that this process may use."""
        status = self.text("proc/self/status")
        found = re.search(r"^Cpus_allowed_list:\s+(\S+)$", status, re.M)
        return cores(found[1]) if found else []

    def programs(self) -> set[str]:
        """Names of those that run, the first 15 characters."""
        return {self.text(f"proc/{n}/comm") for n in self.names("proc") if n.isdigit()}

    def size_of_tmpfs(self, place: str) -> int | None:
        """Of what is mounted there; None: not told."""
        pattern = rf"^\S+ {re.escape(place)} tmpfs \S*?\bsize=(\d+)([kmg]?)\b"
        found = re.search(pattern, self.text("proc/mounts"), re.M)
        return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]] if found else None

"""Energy of this machine's processors, from their counters (RAPL)."""

import time
from collections.abc import Iterator
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
"""Folder of the energy counters, one for each processor package: intel-rapl:0 and so on, also on
AMD."""


class Energy:
    """Energy since construction. The counters wrap after minutes, so call `read` once a minute."""

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self._begin_s = time.monotonic()
        self._ranges = dict(_packages(powercap))
        self._at = {package: _count(package) for package in self._ranges}
        self._joules = 0.0

    def read(self) -> float | None:
        """Return the energy of all packages (J); None if no counter exists or is readable."""
        for package, most in self._ranges.items():
            now = _count(package)
            self._joules += (now - self._at[package]) % (most + 1) * 1e-6
            self._at[package] = now
        return self._joules if self._ranges else None

    def power_w(self) -> float | None:
        """Return the mean power of all packages (W); None if no counter exists or is readable."""
        joules = self.read()
        return None if joules is None else joules / (time.monotonic() - self._begin_s)


def _packages(powercap: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folder of each readable package counter, and its largest count (µJ)."""
    for package in sorted(powercap.glob("intel-rapl:[0-9]*")):
        if ":" in package.name.removeprefix("intel-rapl:"):
            continue  # part of a package
        try:
            _count(package)
            yield package, int((package / "max_energy_range_uj").read_text())
        except (OSError, ValueError):
            continue


def _count(package: Path) -> int:
    return int((package / "energy_uj").read_text())

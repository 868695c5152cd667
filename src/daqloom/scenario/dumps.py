"""The files that describe an imported fabric."""

from __future__ import annotations

from pathlib import Path

from daqloom.scenario.shipped import shipped_folder

CABLES = ("ibnetdiscover.txt", "opensm-subnet.lst", "fabric.json", "fabric.toml")
"""Files with the cabling; the first that exists is read."""
TABLES = ("opensm-lfts.dump", "dump_lfts.txt")
"""Files with the forwarding tables; the first that exists is read."""


def first(folder: Path, names: tuple[str, ...]) -> Path | None:
    """Return the first of these files that the folder has."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def shipped_fabrics() -> dict[str, Path]:
    """Return the folders of the fabrics that come with daqloom, by name."""
    folder = shipped_folder("scenarios") / "fabrics"
    return {path.name: path for path in sorted(folder.glob("*")) if path.is_dir()}

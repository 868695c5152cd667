"""Files that describe an imported network: cabling, forwarding tables, LLDP neighbours."""

from pathlib import Path

from daqloom.scenario.package_files import shipped_folder

CABLES = (
    "ibnetdiscover.txt",
    "opensm-subnet.lst",
    "fabric.json",
    "fabric.toml",
    "ibnetdiscover*",
    "*.lst",
    "iblinkinfo*",
    "*.net_dump",
)
"""Patterns of files with the cabling; the first file that exists is read."""
TABLES = ("opensm-lfts.dump", "dump_lfts.txt", "*.fdbs")
"""Patterns of files with the forwarding tables; the first file that exists is read."""

LLDPCLI, LLDP_TEXT = ".lldp.json", ".lldp.txt"
"""Endings of LLDP neighbour tables, one file per device, read if no file in `CABLES` exists."""


def neighbour_tables(folder: Path) -> list[Path]:
    """Return the neighbour tables in a folder, by name."""
    return sorted(path for path in folder.glob("*.lldp.*") if is_neighbour_table(path))


def is_neighbour_table(path: Path) -> bool:
    """Return whether a file has the name of an LLDP neighbour table."""
    return path.name.endswith((LLDPCLI, LLDP_TEXT))


def dumps_of(path: Path) -> list[Path]:
    """Return the files to read from a folder; for a file, the file itself."""
    if not path.is_dir():
        return [path]
    if cables := first(path, CABLES):
        tables = first(path, TABLES)
        return [cables, tables] if tables else [cables]
    return neighbour_tables(path)


def first(folder: Path, names: tuple[str, ...]) -> Path | None:
    """Return the first file of the folder that matches a pattern, in the order of the patterns."""
    found = (path for name in names for path in sorted(folder.glob(name)) if path.is_file())
    return next(found, None)


def shipped_fabrics() -> dict[str, Path]:
    """Return the folders of the fabrics that come with daqloom, by name."""
    folder = shipped_folder("scenarios") / "fabrics"
    return {path.name: path for path in sorted(folder.glob("*")) if path.is_dir()}

"""Import of a fabric, by name or path, from the files that a site has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daqloom.base.words import did_you_mean, printable
from daqloom.scenario.dumps import (
    CABLES,
    LLDP_TEXT,
    LLDPCLI,
    TABLES,
    first,
    is_neighbour_table,
    neighbour_tables,
    shipped_fabrics,
)
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import lines_of
from daqloom.topology.fabric.fabric import LONGEST_NAME, MOST_NODES, Fabric, is_name
from daqloom.topology.formats import (
    iblinkinfo,
    ibnetdiscover,
    lft_dump,
    lldpcli_text,
    net_dump,
    port_list,
    subnet_list,
)
from daqloom.topology.formats.as_json import read_list
from daqloom.topology.formats.lft_dump import read_lft_dump
from daqloom.topology.formats.link_rows import read_link_rows
from daqloom.topology.formats.lldp_table import read_lldp_table
from daqloom.topology.formats.lldpcli import read_lldpcli
from daqloom.topology.formats.neighbours import LARGEST_TABLE_BYTES, Table, fabric_of_tables
from daqloom.topology.routing.routes import Paths

DUMPS = (
    "the output of ibnetdiscover (also -p) and iblinkinfo (also -l), OpenSM's or ibdiagnet's .lst, "
    "ibdiagnet's .net_dump"
)
"""Kinds of dumps that contain the cabling."""
_LISTS = (
    (iblinkinfo.FIRST, iblinkinfo.iblinkinfo_rows, iblinkinfo.SUBJECT),
    (port_list.FIRST, port_list.port_list_rows, port_list.SUBJECT),
    (net_dump.FIRST, net_dump.net_dump_rows, net_dump.SUBJECT),
)
_Reader = Callable[[Path], tuple[Fabric, list[str]]]
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (subnet_list.FIRST, subnet_list.read_subnet_list),
    (ibnetdiscover.FIRST, ibnetdiscover.read_ibnetdiscover),
    *(
        (first, partial(read_link_rows, rows_of=rows, subject=subject, known=DUMPS))
        for first, rows, subject in _LISTS
    ),
)
"""For each kind of dump: the beginning of one of its lines, and its reader."""


def load_fabric(path: str | PathLike[str]) -> tuple[Fabric, NDArray[np.int16] | None, list[str]]:
    """Return a fabric, its forwarding tables if there are any, and warnings; raises TopologyError.

    `path` is a folder with the files that `daqloom.scenario.dumps` names, or one file with the
    cabling: a neighbour table, a list in `*.json` or `*.toml`, or a dump of `DUMPS`, whose kind is
    recognised from its lines. Tables are int16 (switches, hosts): the output port towards a host, 0
    without route.
    """
    fabric, warnings = load_cabling(path)
    tables, more = load_tables(path, fabric)
    return fabric, tables, warnings + more


def load_cabling(path: str | PathLike[str], rate_bps: int = 0) -> tuple[Fabric, list[str]]:
    """Return fabric and warnings; raises TopologyError. `rate_bps`: used if files have no rate."""
    place = Path(path)
    cabling = first(place, CABLES) if _is_folder(place) else place
    if cabling is None or is_neighbour_table(cabling):
        return _neighbours(place, rate_bps)
    if cabling.suffix in (".json", ".toml"):
        return read_list(cabling, rate_bps), []
    return _dump(cabling)


def _dump(path: Path) -> tuple[Fabric, list[str]]:
    """Return the fabric of a dump; the first line of a known kind selects the reader."""
    first_line = ""
    for _, line in lines_of(path):
        first_line = first_line or line.strip()
        for begins, read in _READERS:
            if begins.match(line):
                return read(path)
    what = f'its first line is "{first_line[:60]}"' if first_line else "it is empty"
    raise TopologyError(f"{path} has no supported cabling: {what}; supported are {DUMPS}")


def _neighbours(path: Path, rate_bps: int) -> tuple[Fabric, list[str]]:
    """Return the fabric of a folder of neighbour tables, or of a single table."""
    files = neighbour_tables(path) if _is_folder(path) else [path]
    if not files:
        refusal = f"{path} has none of {', '.join(CABLES)}, nor *{LLDPCLI} or *{LLDP_TEXT}"
        raise TopologyError(f"{refusal}; expected files with the cabling")
    if len(files) > MOST_NODES:
        raise TopologyError(f"{path} has tables of more than {MOST_NODES} devices")
    name = printable((path if _is_folder(path) else path.parent).absolute().name)
    try:
        return fabric_of_tables(name[:LONGEST_NAME] or "lldp", map(_table, files), rate_bps)
    except TopologyError as error:
        where = "" if str(path) in str(error) else f"{path}: "
        raise TopologyError(f"{where}{error}") from None


def _table(path: Path) -> Table:
    """Return the neighbour table in a file that has the name of its device."""
    device = path.name.removesuffix(LLDPCLI).removesuffix(LLDP_TEXT)
    if not is_name(device):
        raise TopologyError(f"{printable(str(path))}: a file is named after its device")
    if path.name.endswith(LLDPCLI):
        return read_lldpcli(path, device)
    if any(lldpcli_text.FIRST.fullmatch(line) for _, line in lines_of(path, LARGEST_TABLE_BYTES)):
        return lldpcli_text.read_lldpcli_text(path, device)
    return read_lldp_table(path, device)


def load_tables(
    path: str | PathLike[str], fabric: Fabric, read: dict[str, Mapping[str, int]] | None = None
) -> tuple[NDArray[np.int16] | None, list[str]]:
    """Return a folder's forwarding tables, if any, and warnings; `read` receives line counts."""
    place = Path(path)
    tables = first(place, TABLES) if _is_folder(place) else None
    return (None, []) if tables is None else read_lft_dump(tables, fabric, read)


def with_lines(path: str | PathLike[str], fabric: Fabric, paths: Paths) -> Paths:
    """Return the paths with file and line in their defects, if the tables come from the folder."""
    place = Path(path)
    tables = first(place, TABLES) if paths.defects and _is_folder(place) else None
    if tables is None:
        return paths
    return replace(paths, defects=lft_dump.with_lines(tables, fabric, paths.defects))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except ValueError:  # a null character
        return False


def find_fabric(name: str) -> Path:
    """Return the folder of a shipped fabric, or an existing path; raises TopologyError."""
    shipped = shipped_fabrics()
    if name in shipped:
        return shipped[name]
    if "\0" not in name and Path(name).exists():
        return Path(name)
    otherwise = "expected dumps, LLDP tables, a list of cables or a scenario"
    hint = did_you_mean(name, shipped, otherwise)
    raise TopologyError(f"fabric {name}: there is no such file, folder or shipped name; {hint}")

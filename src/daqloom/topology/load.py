"""A fabric from the files that a site has."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.dumps import CABLES, TABLES, first
from daqloom.topology import lft_dump
from daqloom.topology.as_json import read_list
from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import Fabric
from daqloom.topology.ibnetdiscover import read_ibnetdiscover
from daqloom.topology.lft_dump import read_lft_dump
from daqloom.topology.routes import Paths
from daqloom.topology.subnet_list import read_subnet_list


def load_fabric(
    path: str | PathLike[str],
) -> tuple[Fabric, NDArray[np.int16] | None, list[str]]:
    """A fabric, its forwarding tables where there are any, and warnings; raises TopologyError.

    `path` is a folder with the files that `daqloom.scenario.dumps` names, or one file with the
    cabling: `*.lst` from OpenSM, `*.json` of our own, anything else the output of ibnetdiscover.
    Tables are int16 (switches, hosts): the output port towards a host, 0 without route.
    """
    fabric, warnings = load_cabling(path)
    tables, more = load_tables(path, fabric)
    return fabric, tables, warnings + more


def load_cabling(path: str | PathLike[str], rate_bps: int = 0) -> tuple[Fabric, list[str]]:
    """The fabric alone, and warnings; raises TopologyError.

    `rate_bps`: of cables whose rate the files do not tell.
    """
    place = Path(path)
    cabling = first(place, CABLES) if _is_folder(place) else place
    if cabling is None:
        raise TopologyError(
            f"{place} has none of {', '.join(CABLES)}; expected a file with the cabling"
        )
    if cabling.suffix in (".json", ".toml"):
        return read_list(cabling, rate_bps), []
    if cabling.suffix == ".lst":
        return read_subnet_list(cabling)
    return read_ibnetdiscover(cabling)


def load_tables(
    path: str | PathLike[str], fabric: Fabric
) -> tuple[NDArray[np.int16] | None, list[str]]:
    """Its forwarding tables where the folder holds any, and warnings; raises TopologyError."""
    place = Path(path)
    tables = first(place, TABLES) if _is_folder(place) else None
    return (None, []) if tables is None else read_lft_dump(tables, fabric)


def with_lines(path: str | PathLike[str], fabric: Fabric, paths: Paths) -> Paths:
    """Paths by the folder's own tables: what is wrong with them names file and line, too."""
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

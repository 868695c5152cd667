"""Fabrics by name or path."""

from __future__ import annotations

import difflib
from pathlib import Path

from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.errors import TopologyError


def find_fabric(name: str) -> Path:
    """The folder of a shipped fabric, or the file or folder of that path; raises TopologyError."""
    shipped = shipped_fabrics()
    if name in shipped:
        return shipped[name]
    if "\0" not in name and Path(name).exists():
        return Path(name)
    close = difflib.get_close_matches(name, shipped, n=1)
    hint = (
        f'did you mean "{close[0]}"?'
        if close
        else "expected dumps, LLDP tables, a list of cables or the name of a scenario"
    )
    raise TopologyError(f"fabric {name}: there is no such file, folder or shipped name; {hint}")

"""The installation of daqloom: version, commit and the parts that it has."""

from __future__ import annotations

from typing import NamedTuple

from daqloom.base import extras, lazy, plugins
from daqloom.base.version import UNINSTALLED, commit, installed_version
from daqloom.machine import libraries
from daqloom.results.errors import MeasureError
from daqloom.softswitch import dpdk

with lazy.imports():
    from daqloom.machine import findings as machine_findings

NEEDED = "live"
"""Extra without which no events are built."""


class Part(NamedTuple):
    """Part of an installation: its state, and the remedy if it, or some of it, is missing."""

    name: str
    state: str
    fix: str = ""
    is_needed: bool = False
    """Whether event building needs what is missing."""


def lines() -> list[str]:
    """Return the version and, each in a line, the commit and the parts of this installation."""
    transports = ["shm", "tcp"]
    if libraries.is_found(libraries.LIBFABRIC):
        transports.append("libfabric")
    shown = [
        Part("commit", _commit()),
        Part("transports", ", ".join(transports)),
        *_parts(),
    ]
    if installed_version() == UNINSTALLED:
        shown.append(Part("installation", "none, this is a source tree"))
    return [f"daqloom {installed_version()}", *(f"{part.name}: {part.state}" for part in shown)]


def findings(builds: bool = True) -> list[machine_findings.Finding]:
    """Return the version and the parts of this installation, as `daqloom doctor` lists them. Its
    transports are among the findings on the machine. `builds`: it has to build events."""
    version = Part("daqloom", f"{installed_version()}, commit {_commit()}")
    return [
        machine_findings.Finding(
            part.name, "fail" if builds and part.is_needed else "ok", f"{part.state}.", part.fix
        )
        for part in (version, *_parts())
    ]


def _commit() -> str:
    return commit() or "not known"


def _parts() -> tuple[Part, ...]:
    adapters = ", ".join(sorted(plugins.by_name(plugins.ADAPTERS)))
    return _switch(), Part("adapters", adapters or "none"), _extras()


def _switch() -> Part:
    try:
        dpdk.require()
    except MeasureError as error:
        why, _, fix = str(error).partition("; ")
        return Part("software switch", f"no, {why}", f"{fix[:1].upper()}{fix[1:]}.")
    return Part("software switch", "yes")


def _extras() -> Part:
    names = extras.names()
    missing = [name for name in names if not extras.is_installed(name)]
    state = ", ".join(name for name in names if name not in missing) or "none"
    if not missing:
        return Part("extras", state)
    is_needed = NEEDED in missing
    install = NEEDED if is_needed else ",".join(missing)
    fix = f"Run: pip install 'daqloom[{install}]'"
    return Part("extras", f"{state}; not installed: {', '.join(missing)}", fix, is_needed)

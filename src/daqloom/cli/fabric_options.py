"""The argument FABRIC with the options of a parametric one, and what they name."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from daqloom.cli import complete
from daqloom.cli.options import argument, option
from daqloom.topology import TopologyError

if TYPE_CHECKING:
    from daqloom.base.line_counts import FileCounts
    from daqloom.scenario.schema.models import Scenario
    from daqloom.topology.fabric.fabric import Fabric
    from daqloom.topology.routing.routes import Routes
    from daqloom.topology.system.system import Scheduled

CLOS = "clos"


def _fabrics(incomplete: str) -> list[str]:
    """What a shell offers: those that come with daqloom, and the parametric one."""
    from daqloom.scenario.dumps import shipped_fabrics

    return complete.beginning(incomplete, [*shipped_fabrics(), CLOS])


PARAMETERS = {
    "fabric": Annotated[
        str,
        argument(
            "FABRIC",
            "A folder or file of dumps (ibnetdiscover, opensm-lfts.dump), of LLDP neighbour "
            "tables (*.lldp.json, *.lldp.txt) or with a list (*.toml, *.json), a name from "
            "`daqloom topology list`, a scenario, or `clos` with the options below.",
            autocompletion=_fabrics,
        ),
    ],
    "leaves": Annotated[int | None, option("N", "clos: leaf switches.")],
    "spines": Annotated[int | None, option("N", "clos: spine switches.")],
    "links": Annotated[
        int | None, option("N", "clos: cables per pair of leaf and spine (default 1).")
    ],
    "hosts_per_leaf": Annotated[int | None, option("N", "clos: hosts per leaf.")],
    "hosts": Annotated[
        int | None, option("N", "clos: total number of hosts, filled leaf by leaf.")
    ],
    "radix": Annotated[int | None, option("N", "clos: ports of a switch (default: as needed).")],
    "pods": Annotated[
        int | None,
        option("N", "clos of three levels: number of pods, each with these leaves and spines."),
    ],
    "cores": Annotated[
        int | None, option("N", "clos of three levels: core switches above each spine.")
    ],
    "core_links": Annotated[
        int | None, option("N", "clos of three levels: cables from a spine to a core (default 1).")
    ],
    "rate": Annotated[
        str | None,
        option(
            "RATE",
            "Data rate of the cables, such as EDR; of files, where they tell none "
            '(default: clos "200 Gb/s", LLDP "100 Gb/s").',
        ),
    ],
}
"""FABRIC and the options of a parametric one; whoever takes it takes them all."""


@dataclass(frozen=True)
class Given:
    """The fabric that the command line names."""

    fabric: Fabric
    path: Path | None
    """The files that it comes from; None for a parametric one."""
    scenario: Scenario | None = None
    """The scenario whose network it is."""
    tables: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Lines of files with forwarding tables that were read."""

    @property
    def lines(self) -> FileCounts:
        """Lines of all files that were read."""
        return {**self.fabric.lines, **self.tables}

    @cached_property
    def own(self) -> Scheduled | None:
        """Routes and slots of the scenario."""
        from daqloom.topology.system.system import scheduled

        if self.scenario is None:
            return None
        found = scheduled(self.scenario)
        self.tables.update(found.network.fabric.lines)
        return found

    def routes(self, name: str | None) -> tuple[str, Routes]:
        """The routing of a name, or the default one, and what it is called."""
        from daqloom.topology.formats.load import load_tables
        from daqloom.topology.routing.by_name import (
            D_MOD_K,
            IMPORTED,
            MINIMAL,
            default_routing,
            routing,
        )

        if name is None and self.scenario and self.own:
            given = self.scenario.network.routing
            called = f"{given}, of the scenario" if given else "of the scenario"
            return called, self.own.network.routes
        tables = None
        if self.path and name in (None, IMPORTED):
            tables, warnings = load_tables(self.path, self.fabric, self.tables)
            _note(warnings)
        usual = default_routing(tables)
        try:
            return name or usual, routing(self.fabric, tables, name)
        except TopologyError as error:
            if name or usual != D_MOD_K:
                raise
            found = routing(self.fabric, tables, MINIMAL)
            reason = str(error).rpartition("; ")[0]
            _note([f"{reason}; routed by {MINIMAL}, as OpenSM falls back to minhop"])
            return MINIMAL, found


def takes_fabric(command: Callable[..., None]) -> Callable[..., None]:
    """Turns a command's first parameter into FABRIC with its options, and hands over `Given`.

    Warnings of the import go to standard error.
    """
    own = list(inspect.signature(command).parameters.values())[1:]
    hints = get_type_hints(command, include_extras=True)

    @functools.wraps(command)
    def taking(**arguments: Any) -> None:
        name = arguments.pop("fabric")
        options = {key: arguments.pop(key) for key in PARAMETERS if key != "fabric"}
        command(_find(name, options), **arguments)

    def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, keyword, annotation=annotation, default=default)

    parameters = [
        parameter(name, annotation, inspect.Parameter.empty if name == "fabric" else None)
        for name, annotation in PARAMETERS.items()
    ]
    # FABRIC first, the command's own arguments and options, then those of a parametric fabric.
    parameters[1:1] = [parameter(p.name, hints[p.name], p.default) for p in own]
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    taking.__annotations__ = {p.name: p.annotation for p in parameters}
    del taking.__wrapped__
    return taking


def fabric_of(name: str) -> Fabric:
    """The fabric of a folder or file, of a scenario, or one that comes with daqloom. Raises
    TopologyError."""
    return _find(name, {"rate": None}).fabric


def _find(name: str, options: dict[str, Any]) -> Given:
    from daqloom.scenario.file.load import load
    from daqloom.topology.formats.load import find_fabric, load_cabling
    from daqloom.topology.shapes.shape import cables

    if name == CLOS:
        return Given(_clos(options), None)
    rate_bps = _rate(options.pop("rate"))
    given = [f"--{key.replace('_', '-')}" for key, value in options.items() if value is not None]
    if given:
        raise TopologyError(f"{given[0]} describes a parametric fabric; write {CLOS} for {name}")
    if _is_scenario(name):
        scenario = load(name)
        fabric, warnings = cables(scenario)
        _note(warnings)
        has_dumps = scenario.network.shape == "imported" and not scenario.faults.cables
        return Given(fabric, scenario.network.folder if has_dumps else None, scenario)
    path = find_fabric(name)
    fabric, warnings = load_cabling(path, rate_bps)
    _note(warnings)
    return Given(fabric, path)


def _is_scenario(name: str) -> bool:
    """Whether a name or path is that of a scenario: its file has a table [network], a list of
    cables has none."""
    from daqloom.scenario.dumps import shipped_fabrics
    from daqloom.scenario.file.load import LARGEST_SCENARIO_BYTES, presets
    from daqloom.scenario.files import read_text
    from daqloom.scenario.toml import parse_toml

    if name in presets():
        return name not in shipped_fabrics()
    if not name.endswith(".toml"):
        return False
    try:
        return "network" in parse_toml(read_text(Path(name), LARGEST_SCENARIO_BYTES))
    except (ValueError, RecursionError):
        return False


def _note(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"daqloom: note: {warning}", file=sys.stderr)


def _rate(text: str | None) -> int:
    """The rate of --rate (b/s), 0 where it is not given."""
    from daqloom.scenario.link_rates import PORT_RATE

    try:
        return round(PORT_RATE.parse(text)) if text is not None else 0
    except ValueError as error:
        raise TopologyError(f"--rate {text} {error}") from None


def _clos(options: dict[str, Any]) -> Fabric:
    from daqloom.topology.shapes.clos import folded_clos

    given = {key: value for key, value in options.items() if value is not None}
    for key in ("leaves", "spines", "hosts_per_leaf"):
        if key not in given:
            raise TopologyError(
                f"{CLOS} needs --{key.replace('_', '-')}; an example: "
                f"{CLOS} --leaves 18 --spines 10 --links 2 --hosts-per-leaf 20"
            )
    rate_bps = _rate(given.pop("rate", "200 Gb/s"))
    return folded_clos(CLOS, rate_bps=rate_bps, **given)

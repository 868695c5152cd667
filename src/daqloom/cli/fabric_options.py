"""The argument FABRIC, options that describe a parametric fabric, and the selected fabric."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from daqloom.base import lazy
from daqloom.cli import complete
from daqloom.cli.options import argument, option
from daqloom.topology import TopologyError

with lazy.imports():
    from daqloom.base import line_counts
    from daqloom.deployment import fabric_system
    from daqloom.scenario import dumps, files, link_rates, toml
    from daqloom.scenario.file import load as file_load
    from daqloom.scenario.schema import models
    from daqloom.topology.fabric import fabric as fabric_fabric
    from daqloom.topology.formats import load as formats_load
    from daqloom.topology.routing import by_name
    from daqloom.topology.routing import routes as routing_routes
    from daqloom.topology.shapes import clos, shape


CLOS = "clos"


def _fabrics(incomplete: str) -> list[str]:
    """Return shell completions: the fabrics that come with daqloom, and `clos` (parametric)."""
    return complete.beginning(incomplete, [*dumps.shipped_fabrics(), CLOS])


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
            "Data rate of the cables, such as EDR; of files, where they list none "
            '(default: clos "200 Gb/s", LLDP "100 Gb/s").',
        ),
    ],
}
"""Parameters of every command on a fabric: FABRIC and the options of a parametric fabric."""


@dataclass(frozen=True)
class NamedFabric:
    """The fabric that the command line names."""

    fabric: fabric_fabric.Fabric
    path: Path | None
    """The file or folder of the fabric; None for a parametric fabric."""
    scenario: models.Scenario | None = None
    """The scenario that describes the fabric; None for other fabrics."""
    tables: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Counts of used and ignored lines in files of forwarding tables."""

    @property
    def lines(self) -> line_counts.FileCounts:
        """Counts of used and ignored lines in all files."""
        return {**self.fabric.lines, **self.tables}

    @cached_property
    def own(self) -> fabric_system.ScheduledNetwork | None:
        """Routes and slots of the scenario; None without a scenario."""
        if self.scenario is None:
            return None
        found = fabric_system.schedule_network(self.scenario)
        self.tables.update(found.network.fabric.lines)
        return found

    def routes(self, name: str | None) -> tuple[str, routing_routes.Routes]:
        """Return name and routes of a routing, of the default routing without `name`."""
        if name is None and self.scenario and self.own:
            given = self.scenario.network.routing
            called = f"{given}, of the scenario" if given else "of the scenario"
            return called, self.own.network.routes
        tables = None
        if self.path and name in (None, by_name.IMPORTED):
            tables, warnings = formats_load.load_tables(self.path, self.fabric, self.tables)
            _note(warnings)
        usual = by_name.default_routing(tables)
        try:
            return name or usual, by_name.routing(self.fabric, tables, name)
        except TopologyError as error:
            if name or usual != by_name.D_MOD_K:
                raise
            found = by_name.routing(self.fabric, tables, by_name.MINIMAL)
            reason = str(error).rpartition("; ")[0]
            _note([f"{reason}; routed by {by_name.MINIMAL}, as OpenSM falls back to minhop"])
            return by_name.MINIMAL, found


def takes_fabric(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's first parameter by FABRIC with its options, and pass the resulting
    `NamedFabric` to the command. Warnings from reading the fabric go to standard error."""
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
    # Order: FABRIC, the command's arguments and options, then options of a parametric fabric.
    parameters[1:1] = [parameter(p.name, hints[p.name], p.default) for p in own]
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    taking.__annotations__ = {p.name: p.annotation for p in parameters}
    del taking.__wrapped__
    return taking


def fabric_of(name: str) -> fabric_fabric.Fabric:
    """Return the fabric that a folder, file, scenario or shipped name describes. Raises
    TopologyError."""
    return _find(name, {"rate": None}).fabric


def _find(name: str, options: dict[str, Any]) -> NamedFabric:
    if name == CLOS:
        return NamedFabric(_clos(options), None)
    rate_bps = _rate(options.pop("rate"))
    given = [f"--{key.replace('_', '-')}" for key, value in options.items() if value is not None]
    if given:
        raise TopologyError(f"{given[0]} describes a parametric fabric; write {CLOS} for {name}")
    if _is_scenario(name):
        scenario = file_load.load(name)
        fabric, warnings = shape.cables(scenario)
        _note(warnings)
        has_dumps = scenario.network.shape == "imported" and not scenario.faults.cables
        return NamedFabric(fabric, scenario.network.folder if has_dumps else None, scenario)
    path = formats_load.find_fabric(name)
    fabric, warnings = formats_load.load_cabling(path, rate_bps)
    _note(warnings)
    return NamedFabric(fabric, path)


def _is_scenario(name: str) -> bool:
    """Return whether a name or path means a scenario. A scenario file has a table [network]; a list
    of cables has none."""
    if name in file_load.presets():
        return name not in dumps.shipped_fabrics()
    if not name.endswith(".toml"):
        return False
    try:
        return "network" in toml.parse_toml(
            files.read_text(Path(name), file_load.LARGEST_SCENARIO_BYTES)
        )
    except (ValueError, RecursionError):
        return False


def _note(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"daqloom: note: {warning}", file=sys.stderr)


def _rate(text: str | None) -> int:
    """Return the value of the option --rate (b/s), 0 if it is not given."""
    try:
        return round(link_rates.PORT_RATE.parse(text)) if text is not None else 0
    except ValueError as error:
        raise TopologyError(f"--rate {text} {error}") from None


def _clos(options: dict[str, Any]) -> fabric_fabric.Fabric:
    given = {key: value for key, value in options.items() if value is not None}
    for key in ("leaves", "spines", "hosts_per_leaf"):
        if key not in given:
            raise TopologyError(
                f"{CLOS} needs --{key.replace('_', '-')}; an example: "
                f"{CLOS} --leaves 18 --spines 10 --links 2 --hosts-per-leaf 20"
            )
    rate_bps = _rate(given.pop("rate", "200 Gb/s"))
    return clos.folded_clos(CLOS, rate_bps=rate_bps, **given)

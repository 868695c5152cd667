"""Shell completion of names of scenarios, studies, metrics and keys.

A completion never fails: where there is no name to offer, the shell offers files.
"""

from collections.abc import Iterable

import typer  # whose annotations typer itself reads


def scenarios(incomplete: str) -> list[str]:
    """Return the names of shipped files that begin so."""
    from daqloom.scenario.shipped import shipped

    return beginning(incomplete, shipped("scenarios"))


def studies(incomplete: str) -> list[str]:
    """Return the names of shipped files that begin so."""
    from daqloom.scenario.shipped import shipped

    return beginning(incomplete, shipped("studies"))


def metrics(incomplete: str) -> list[str]:
    """Return the metrics of a result; names with `*` up to the first `*`."""
    from daqloom.results.metrics import METRICS

    return beginning(incomplete, (metric.name.partition("*")[0] for metric in METRICS))


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the keys of the scenario in the command line, up to the `=`."""
    from daqloom.scenario import ScenarioError, known_keys
    from daqloom.scenario.document import given
    from daqloom.topology.system.scenarios import load

    known = known_keys()
    # An option without its value ends the parsing: what came before it is left among the arguments.
    if name := ctx.params.get("scenario") or next(iter(ctx.args), None):
        try:
            known = given(load(name).document())
        except ScenarioError:
            return []
    # Of names that people choose, as those of flows, the rest is theirs.
    return beginning(incomplete, (k.partition("*")[0] if "*" in k else f"{k}=" for k in known))


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with the typed text."""
    return sorted({name for name in names if name.startswith(incomplete)})

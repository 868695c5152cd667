"""Shell completion of names of scenarios, studies, metrics and keys.

A completion never fails: without matching names, the shell completes file names.
"""

from collections.abc import Iterable

import typer  # whose annotations typer itself reads

from daqloom.base import lazy

with lazy.imports():
    from daqloom import scenario
    from daqloom.deployment import scenarios as deployment_scenarios
    from daqloom.results import metrics as results_metrics
    from daqloom.scenario import document, package_files
    from daqloom.terms import explain
    from daqloom.terms import formats as terms_formats


def scenarios(incomplete: str) -> list[str]:
    """Return the names of shipped files that begin so."""
    return beginning(incomplete, package_files.package_files("scenarios"))


def studies(incomplete: str) -> list[str]:
    """Return the names of shipped files that begin so."""
    return beginning(incomplete, package_files.package_files("studies"))


def formats(incomplete: str) -> list[str]:
    """Return the formats of files that begin so."""
    return beginning(incomplete, (each.kind for each in terms_formats.FORMATS))


def published_numbers(incomplete: str) -> list[str]:
    """Return the names of shipped files that begin so."""
    return beginning(incomplete, package_files.package_files("published"))


def metrics(incomplete: str) -> list[str]:
    """Return completions of metric names; a name with `*` is completed up to the `*`."""
    return beginning(
        incomplete, (metric.name.partition("*")[0] for metric in results_metrics.METRICS)
    )


def terms(incomplete: str) -> list[str]:
    """Return the names of keys, metrics, counters and terms that begin so."""
    return beginning(incomplete, explain.names())


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return completions of keys, with their `=`, for the scenario on the command line."""
    known = scenario.known_keys()
    # Parsing ends at an option without value; earlier arguments then remain in `ctx.args`.
    if name := ctx.params.get("scenario") or next(iter(ctx.args), None):
        try:
            known = document.keys(deployment_scenarios.load(name).document())
        except scenario.ScenarioError:
            return []
    # Keys with a part that users name, such as flows, are completed up to that part.
    return beginning(incomplete, (k.partition("*")[0] if "*" in k else f"{k}=" for k in known))


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with the typed text."""
    return sorted({name for name in names if name.startswith(incomplete)})

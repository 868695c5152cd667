"""The metrics of a result, each declared once: name, unit, label, meaning, methods. The
declarations are the only description of a metric. Results and studies reject undeclared names,
tables and figures use the labels and units, and `python -m daqloom.results.metrics` generates
`docs/reference/metrics.md`."""

from collections.abc import Iterable, Mapping

from daqloom.base.words import did_you_mean
from daqloom.results.metrics import cost, events, faults, live, network, units
from daqloom.results.metrics.metric import TAKES as TAKES
from daqloom.results.metrics.metric import Metric as Metric
from daqloom.results.metrics.metric import declared_in
from daqloom.results.metrics.metric import with_unit as with_unit

SUBJECTS: Mapping[str, tuple[Metric, ...]] = {
    "Events": declared_in(events.EVENTS),
    "Readout and builder units": declared_in(units.UNITS),
    "Network": declared_in(network.NETWORK),
    "Real runs": declared_in(live.LIVE),
    "Faults": declared_in(faults.FAULTS),
}
METRICS: tuple[Metric, ...] = tuple(metric for part in SUBJECTS.values() for metric in part)
COST = declared_in(cost.COST)
"""Metrics of the block `engine` in a result."""
_BY_NAME = {metric.name: metric for metric in METRICS}


def find_declaration(path: str) -> Metric | None:
    """Return the declaration of a metric by its dotted name; None if undeclared."""
    root, dot, _ = path.partition(".")
    return _BY_NAME.get(path) or _BY_NAME.get(f"{root}{dot}*")


def unknown(metrics: Mapping[str, object]) -> Iterable[str]:
    """Return the dotted names in `metrics` (one level of nesting) that are not declared."""
    return (path for path in flatten(metrics) if find_declaration(path) is None)


def declaration(path: str) -> Metric:
    """Return the declaration of a metric by its dotted name. Raises KeyError if there is none."""
    if (metric := find_declaration(path)) is None:
        raise KeyError(path)
    return metric


def label(path: str) -> str:
    """Return the label of a metric by its dotted name. Raises KeyError if there is none."""
    return declaration(path).label_of(path)


def unit_of(path: str) -> str:
    """Return the unit of a metric by its dotted name. Raises KeyError if there is none."""
    return declaration(path).unit


def for_people(path: str, value: float) -> str:
    """Return a value with its unit, such as "47.5 MB" for buffer_peak_bytes.tor and 47.5e6. Raises
    KeyError if the metric is undeclared."""
    return with_unit(value, unit_of(path))


def unknown_sentence(name: str) -> str:
    """Return an error sentence for an unknown metric, with the most similar metric name."""
    hint = did_you_mean(name, _BY_NAME, "docs/reference/metrics.md lists them")
    return f'"{name[:80]}" is not a metric; {cost_hint(name)}{hint}'


def cost_hint(name: str) -> str:
    """Return a clause on the relative cost of switches if an unknown name contains "cost"."""
    if "cost" not in name:
        return ""
    return (
        "the relative cost of switches is a column of a report's table, where the study varies "
        "network.switch.tor.model; "
    )


def flatten(metrics: Mapping[str, object]) -> dict[str, object]:
    """Flatten `{"a": {"b": 1}}` to `{"a.b": 1}`."""
    flat: dict[str, object] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat

"""The metrics of every shipped scenario and the points of every shipped study, as they are today.

`python tests/support/snapshot.py` writes `tests/support/data/snapshot.json` anew, with which
`tests/project/test_snapshot.py` compares.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario.package_files import package_files
from daqloom.study.file.load import load_study
from daqloom.study.methods import methods
from daqloom.study.run.program import tasks

FILE = Path(__file__).parent / "data" / "snapshot.json"

SEED = 1

_ONE_OF_MANY = re.compile(r"\.\d+(\.|$)")
"""In the name of a single link's or port's metric: the fingerprint covers them."""


def _lasts(duration: str, warmup: str, **more: object) -> dict[str, object]:
    """Return the overrides of a run; `__` stands for a dot in the keys of `more`."""
    keys = {key.replace("__", "."): value for key, value in more.items()}
    return {"run.duration": duration, "run.warmup": warmup} | keys


def _nodes(count: int, **more: object) -> dict[str, object]:
    """Return the overrides for so many nodes with MFPs so small that several rounds end."""
    return {"readout__units": count, "event__packing": 1000} | more


def _in_groups(count: int, **more: object) -> dict[str, object]:
    """Return the same for nodes with LHCb's three groups of sources."""
    groups = [{"sources": count, "share": share} for share in (0.28, 0.33, 0.39)]
    return _nodes(count, event__groups=groups, **more)


RUNS: dict[str, dict[str, dict[str, object]]] = {
    "atlas-farm": {"simulate": _lasts("5 ms", "1 ms")},
    "atlas-hllhc": {"simulate": _lasts("5 ms", "1 ms")},
    "atlas-lab": {"simulate": _lasts("10 ms", "2 ms")},
    "daqpipe-cluster64": {"simulate": _lasts("4 ms", "2 ms", event__packing=64)},
    "daqpipe-fattree72": {"simulate": _lasts("4 ms", "2 ms", event__packing=64)},
    "daqpipe-laptop": {"simulate": _lasts("10 ms", "2 ms")},
    "ib-buffer-probe": {"simulate": {}},
    "ib-uniform-324": {"simulate": _lasts("10 us", "3 us")},
    "ib-uniform-64": {"simulate": _lasts("30 us", "10 us")},
    "ib-write-lat": {"simulate": {}},
    "incast-rack": {"simulate": _lasts("1 s", "0.2 s")},
    "laptop": {"simulate": _lasts("10 ms", "2 ms")},
    "lab-incast": {"simulate": _lasts("2 s", "0.5 s")},
    "lab-pair": {"simulate": _lasts("2 s", "0.5 s")},
    "lab-rack": {"simulate": _lasts("2 s", "0.5 s")},
    "lab-shift": {"simulate": _lasts("2 s", "0.5 s")},
    "laptop-pull": {"simulate": _lasts("100 ms", "20 ms")},
    "lhcb-10-percent": {"simulate": _lasts("6 ms", "2 ms", event__packing=1000)},
    "lhcb-500": {
        "simulate": _lasts("6 ms", "2 ms", **_nodes(72)),
        "simulate, all nodes": _lasts("100 us", "10 us"),
    },
    "lhcb-60-percent": {
        "simulate": _lasts("5 ms", "2 ms", **_in_groups(60)),
        "simulate, all nodes": _lasts("200 us", "20 us"),
    },
    "lhcb-ethernet": {
        "simulate": _lasts("5 ms", "2 ms", **_in_groups(40)),
        "simulate, all nodes": _lasts("200 us", "20 us"),
    },
    "lhcb-full-chain": {
        "simulate": _lasts("6 ms", "2 ms", **_in_groups(40)),
        "simulate, all nodes": _lasts("10 ms", "5 ms"),
    },
    "lhcb-run3": {
        "simulate": _lasts("8 ms", "3 ms", **_in_groups(40)),
        "simulate, all nodes": _lasts("10 ms", "5 ms"),
    },
    "lhcb-run3-test": {
        "simulate": _lasts("5 ms", "2 ms", **_in_groups(40)),
        "simulate, all nodes": _lasts("200 us", "20 us"),
    },
    "lhcb-run3-test-160": {
        "simulate": _lasts("5 ms", "2 ms", **_nodes(40)),
        "simulate, all nodes": _lasts("200 us", "20 us"),
    },
    "lhcb-run3-test-20": {
        "simulate": _lasts("6 ms", "2 ms", **_in_groups(40, network__leaves=3)),
        "simulate, all nodes": _lasts("200 us", "20 us"),
    },
    "lossless-switch-all-to-all": {"simulate": _lasts("60 ms", "20 ms")},
    "lossless-switch-all-to-one": {"simulate": _lasts("1 s", "0.1 s")},
    "pull-infiniband": {"simulate": _lasts("4 ms", "1 ms")},
    "small-rack": {"simulate": _lasts("0.2 s", "20 ms")},
}
"""The runs of each shipped scenario and their overrides: short; where a round of event building
takes too long, of fewer nodes and smaller MFPs, and of all nodes for a moment."""


def of_scenario(name: str) -> dict[str, dict[str, Any]]:
    """Return the metrics of a scenario, by method and name."""
    system = load(name)
    found = {}
    if closed := _numbers(methods.analyse(system)):
        found["analyse"] = closed
    for run, overrides in RUNS[name].items():
        found[run] = _numbers(methods.simulate(override(system, overrides), seed=SEED))
    return found


def of_study(name: str) -> dict[str, Any]:
    """Return what a study would compute: its numbers of points and tasks, and what the first and
    the last point set."""
    study = load_study(name)
    indices = list(study.indices())
    found = {"points": len(indices), "tasks": sum(1 for _ in tasks(study))}
    for place, index in (("first", indices[0]), ("last", indices[-1])):
        found[place] = list(study.steps(index).values())
    if study.search is not None:
        found["search"] = list(study.search.range)
    return found


def read() -> dict[str, dict[str, Any]]:
    """Return the snapshot on record."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return found


def _numbers(result: Result) -> dict[str, Any]:
    """Return all numbers of a result but what it cost, and its fingerprint."""
    record = result.to_dict()
    found = {name: record[name] for name in ("fingerprint",) if name in record}
    for name in ("sim_events", "packet_hops"):
        if name in record["engine"]:
            found[f"engine.{name}"] = record["engine"][name]
    numbers = _flat(record["metrics"], "") | _flat(record.get("analysis", {}), "analysis.")
    return found | {name: n for name, n in numbers.items() if not _ONE_OF_MANY.search(name)}


def _flat(nested: Mapping[str, Any], prefix: str) -> dict[str, int | float | bool]:
    flat: dict[str, int | float | bool] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            flat[prefix + name] = value
    return flat


def main() -> None:
    """Write the snapshot anew."""
    snapshot = {
        "scenarios": {name: of_scenario(name) for name in package_files("scenarios")},
        "studies": {name: of_study(name) for name in package_files("studies")},
    }
    FILE.write_text(json.dumps(snapshot, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()

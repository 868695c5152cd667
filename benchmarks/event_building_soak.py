"""The event builder for some time, every event checked, undisturbed or with faults.

Folded nodes of `laptop` on this machine. Prints JSON: what was done, and what became of every
event. Exit 1: something was wrong, there twice, not accounted for, or broken and not noticed.

`--faults N`: one after the other, units are killed or stopped for seconds ([faults.injected]); with
`--kinds kill stop cut` and `libfabric:tcp`, links go down as well, each unit being in a network
namespace of its own.

`--rounds N`: faults of all units together, N of each kind, one after the other; see
event_building_group_faults.py. Root only.

    python benchmarks/event_building_soak.py --minutes 10
    python benchmarks/event_building_soak.py --minutes 10 --faults 20 --seed 1 \
        --transport libfabric:tcp
    python benchmarks/event_building_soak.py --minutes 60 --faults 200 \
        --set event.fragment_size="250 B" --set event.packing=2000
    python benchmarks/event_building_soak.py --rounds 10 --transport libfabric:tcp
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
from typing import Any

EARLIEST = 0.03
"""Faults begin after this share of the time."""
QUIET_TIMEOUTS = 4.5
"""Fault timeouts before the end in which none begins: everybody notices the last one."""
TIMEOUTS = (3.0, 4.0)
"""Fault timeouts that a stop or a cut lasts: everybody notices it."""
WHAT: dict[str, dict[str, object]] = {
    "kill": {"what": "unit"},
    "stop": {"what": "unit", "how": "stopped"},
    "cut": {"what": "port"},
}


def in_own_network() -> None:
    """Starts this program again where cutting connections harms nobody; not if it may not."""
    if os.geteuid() != 0 or "SOAK_NETWORK" in os.environ or not shutil.which("unshare"):
        return
    own = f"ip link set lo up && exec {sys.executable} " + '"$@"'
    os.environ["SOAK_NETWORK"] = "own"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", own, "sh", *sys.argv])


def injection(given: argparse.Namespace, fault_timeout_s: float) -> dict[str, object]:
    """Faults of one unit after another, so that each has time to come back before its next one."""
    chance = random.Random(given.seed)
    kinds = given.kinds or ["kill", "stop"]
    first_s = EARLIEST * 60 * given.minutes
    last_s = 60 * given.minutes - QUIET_TIMEOUTS * fault_timeout_s
    if given.faults and last_s <= first_s:
        sys.exit(f"--minutes {given.minutes} leaves no time for faults: give a longer time")
    apart_s = (last_s - first_s) / max(1, given.faults)
    keys: dict[str, object] = {}
    for number in range(given.faults):
        kind, unit = chance.choice(kinds), number % given.units
        at_s = first_s + (number + chance.uniform(0.1, 0.9)) * apart_s
        fault = WHAT[kind] | {"at": f"{at_s:.3f} s", "which": unit}
        if kind == "cut":
            fault["which"] = f"H00-{unit:02}"
        if kind != "kill":
            fault["lasts"] = f"{fault_timeout_s * chance.uniform(*TIMEOUTS):.3f} s"
        keys |= {f"faults.injected.{kind}-{number}.{key}": value for key, value in fault.items()}
    return keys


def soak(given: argparse.Namespace) -> dict[str, Any]:
    import daqloom

    keys = {
        "measure.duration": f"{60 * given.minutes} s",
        "measure.warmup": "1 s",
        "measure.transport": given.transport,
        "measure.namespaces": "cut" in given.kinds,
        "readout.units": given.units,
        "network.hosts_per_leaf": given.units,
    }
    system = daqloom.load("laptop", keys).with_overrides(given.set)
    system = system.with_overrides(injection(given, system.scenario.measure.fault_timeout))
    result = system.measure(on_event=lambda event: print(event.text, file=sys.stderr))
    return verdict(given, result.to_dict(series=["faults", "run_events"]))


def verdict(given: argparse.Namespace, result: dict[str, Any]) -> dict[str, Any]:
    metrics = result["metrics"]
    accounts = metrics["events_accounted"]
    fates = {name: count for name, count in accounts.items() if name != "begun"}
    begun, detected = (metrics.get(f"faults_{what}", 0) for what in ("begun", "detected"))
    faults = result["series"].get("faults", {name: [] for name in ("name", "what", "change")})
    rows = list(zip(faults["name"], faults["what"], faults["change"], strict=True))

    def names_of(change: str, what: str) -> set[str]:
        return {name for name, *row in rows if row == [what, change]}

    entries = result["series"]["run_events"]["text"]
    hit_lost = sum(text.endswith("is lost already") for text in entries)
    problems = []
    if metrics["events_wrong"]:
        problems.append(f"{metrics['events_wrong']} events were wrong")
    if metrics["events_repeated"]:
        problems.append(f"{metrics['events_repeated']} events came twice")
    if sum(fates.values()) != accounts["begun"] or min(fates.values()) < 0:
        problems.append(f"not all events are accounted for: {accounts}")
    if not accounts["built"]:
        problems.append("no event was built")
    if begun + hit_lost != given.faults:
        problems.append(f"{begun} of {given.faults} faults were done")
    # A link that is cut while all regroup anyway is cut from nothing.
    if unnoticed := sorted(names_of("begins", "unit") - names_of("detected", "unit")):
        problems.append(f"nobody noticed {', '.join(unnoticed)}")
    if given.faults == 0 and accounts["begun"] != accounts["built"]:
        problems.append(f"not all events were built, though nothing broke: {accounts}")
    if given.faults == 0 and metrics["units_lost"]:
        problems.append(f"{metrics['units_lost']} units were lost")
    counted = ("regroupings", "units_lost", "events_accounted", "event_rate_hz")
    checked = ("events_checked", "events_wrong", "events_repeated")
    return {
        "minutes": given.minutes,
        "transport": given.transport,
        "seed": given.seed,
        "faults_begun": begun,
        "faults_detected": detected,
        "faults_of_lost_units": hit_lost,
        "faults": faults,
        **{name: metrics[name] for name in (*counted, *checked)},
        "warnings": result["warnings"],
        "problems": problems,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--longest", type=float, default=5.0, help="fault of all units (s)")
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--set", action="append", default=["measure.fault_timeout=2 s"])
    given = parser.parse_args()
    if given.rounds:
        in_own_network()
        from event_building_group_faults import rounds

        report = rounds(
            given.rounds, given.kinds, given.transport, given.longest, given.seed, given.set
        )
        print(json.dumps(report, indent=2))
        return 1 if report["problems"] else 0
    if not given.faults:  # all is to be built, also where a consumer is kept from its processor
        given.set.insert(0, 'measure.when_full="wait"')
    report = soak(given)
    print(json.dumps(report, indent=2))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

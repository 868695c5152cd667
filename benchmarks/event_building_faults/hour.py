"""Event builder with faults of every kind on real processes, disks and networks.

A run of `daqloom control` builds events while units, groups of units, the run control, the network,
the disk, consumers and hooks fail in an order that the seed gives; see faults.py. After each fault
all units have to build again. Everything delivered, by files or by consumers, is read: no event is
wrong or there twice, and all are accounted for. Root only.

Prints JSON, and progress to standard error. Exit 1: something was wrong.

    python benchmarks/event_building_faults/hour.py --console --study
    python benchmarks/event_building_faults/hour.py --transport tcp --console --study
    python benchmarks/event_building_faults/hour.py --minutes 3 --faults 14 --units 4
    python benchmarks/event_building_faults/hour.py --kinds group --only all-killed --faults 2
    python benchmarks/event_building_faults/hour.py --compare-console
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from system import MARK, System, built_meps, enter_namespaces

from daqloom.control.record.past import read_run
from daqloom.control.record.series import RUN, read_series
from daqloom.report import matplotlib_renderer, style
from daqloom.report.figure import Legend, Rule
from daqloom.report.system import run_figure

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from companions import Consumers, Memory, Viewer, processes_with, study  # noqa: E402
from recording import Recording, books, problems_of  # noqa: E402

from faults import KINDS, Faults  # noqa: E402

PACKING = 20
COMPARISON_S, SETTLING_S = 20.0, 3.0
COLOURS = (
    style.ORANGE,
    style.PURPLE,
    style.BLACK,
    style.SKY,
    style.AMBER,
    style.GREEN,
    style.GREY,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--units", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--only", nargs="*", default=[], help="names of faults")
    parser.add_argument("--console", action="store_true")
    parser.add_argument("--study", action="store_true")
    parser.add_argument("--figure", type=Path, help="file for the rate over time with the faults")
    parser.add_argument("--log", type=Path, help="file for the log of the run controls")
    parser.add_argument("--compare-console", action="store_true")
    parser.add_argument("--comparisons", type=int, default=10)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    enter_namespaces()
    if not given.faults:  # all is to be built, also while a sink is kept from its processor
        given.set.insert(0, "measure.when_full=wait")
    report = console_ratio(given) if given.compare_console else hour(given)
    if left := processes_with(f"{MARK}={os.environ[MARK]}"):
        report["problems"].append(f"processes {left} are left behind")
    print(json.dumps(report, indent=2))
    return 1 if report["problems"] else 0


def hour(given: argparse.Namespace) -> dict[str, Any]:
    """Break what the seed gives, at times that it gives; the report."""
    chance = random.Random(given.seed)
    done: list[dict[str, Any]] = []
    with ExitStack() as outer:
        folder = Path(outer.enter_context(tempfile.TemporaryDirectory()))
        system = outer.enter_context(System(folder, given.units, given.transport, given.set))
        if given.log:
            outer.callback(lambda: given.log.write_text("\n".join(system.lines)))
        recording = outer.enter_context(Recording(system.recording))
        with ExitStack() as stack:
            system.until_whole()
            consumers = stack.enter_context(Consumers(system))
            faults = Faults(system, consumers, chance)
            course = faults.course(given.faults, given.kinds, given.only)
            memory = stack.enter_context(Memory(folder))
            viewer = stack.enter_context(Viewer(folder)) if given.console else None
            studies = stack.enter_context(study(folder)) if given.study else []
            began_s, length_s = time.monotonic(), 60 * given.minutes
            for number, (kind, name) in enumerate(course):
                at_s = length_s * (number + chance.uniform(0.1, 0.9)) / len(course)
                time.sleep(max(0.0, began_s + at_s - time.monotonic()))
                system.lines.append(f"---- {kind} {name}")
                done.append(fault_cost(system, faults, kind, name, began_s))
                note(f"{number + 1} of {len(course)}, {sentence(done[-1])}")
            time.sleep(max(0.0, began_s + length_s - time.monotonic()))
            system.end()
        recording.close()
        fates = books(system.folder, system.sinks)
        recorded = recording.record()
        problems = problems_of(recorded, fates, faults.kills, PACKING) + system.left_behind()
        problems += [problem for each in done for problem in each["problems"]]
        if not done and fates["built"] != fates["begun"]:
            problems.append(f"not all events were built, though nothing broke: {fates}")
        kept = memory.record()
        problems += [
            f"memory of the {kind} grows: {each}"
            for kind, each in kept.items()
            if not each["is_flat"]
        ]
        if any(studies):
            problems.append(f"studies ended with the exit codes {sorted(set(studies))}")
        if given.figure:
            draw(system.folder, done, given.figure)
    return {
        "benchmark": "event_building_faults",
        **{name: getattr(given, name) for name in ("transport", "minutes", "units", "seed")},
        "cores": os.cpu_count(),
        "by_kind": by_kind(done),
        "faults": done,
        "events_accounted": fates,
        "recorded": recorded,
        "setups": len(system.sinks),
        "memory": kept,
        "frames_of_viewer": viewer.frames if viewer else None,
        "studies": len(studies) if given.study else None,
        "problems": problems,
    }


def fault_cost(
    system: System, faults: Faults, kind: str, name: str, began_s: float
) -> dict[str, Any]:
    """Break one thing, wait until all units build again, and return what it has cost."""
    before, _ = system.until_whole()
    system.use_sink(faults.sinks.get(kind, system.sinks[-1]))
    at_s, problems = time.time(), []
    what = faults.kinds[kind][name]()
    over_s = time.monotonic()
    try:
        after, whole_s = system.until_whole()
    except RuntimeError as error:
        raise RuntimeError(f"after {kind} {name} ({what}): {error}") from None
    lost, regroupings = (
        after.counts.get(each, 0) - before.counts.get(each, 0)
        for each in ("units_lost", "regroupings")
    )
    if name == "killed-running" and "gap" not in what and after.epoch != before.epoch:
        problems.append(f"the epoch did not go on: {what}")
    return {
        "kind": kind,
        "name": name,
        "what": what,
        "time_s": at_s,
        "units_lost": lost,
        "regroupings": regroupings,
        "epochs": after.epoch - before.epoch,
        "events_lost": dict(Counter(after.lost) - Counter(before.lost)),
        "return_s": round(max(0.0, whole_s - over_s), 1),
        "problems": problems,
    }


def sentence(done: dict[str, Any]) -> str:
    return (
        f"{done['kind']}: {done['what']}; {done['units_lost']} units lost, "
        f"{done['epochs']} epochs, events lost {done['events_lost']}, "
        f"all build after {done['return_s']} s"
    )


def by_kind(done: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the number of faults of each kind, and what they have cost."""
    found = {}
    for kind in sorted({each["kind"] for each in done}):
        rows = [each for each in done if each["kind"] == kind]
        found[kind] = {
            "faults": len(rows),
            **dict(sorted(Counter(each["name"] for each in rows).items())),
            "units_lost": sum(each["units_lost"] for each in rows),
            "epochs": sum(each["epochs"] for each in rows),
            "median_return_s": median(each["return_s"] for each in rows),
            "longest_return_s": max(each["return_s"] for each in rows),
        }
    return found


def draw(run: Path, done: list[dict[str, Any]], path: Path) -> None:
    """Draw the record of the run, with the faults marked by kind."""
    past_run = read_run(run)
    columns, _ = read_series(run, RUN)
    began_s = past_run.about.began.timestamp()
    title = f"{len(done)} faults, {past_run.about.units} units, {past_run.about.transport}"
    plain = run_figure.figure(title, columns, ())
    ends_s = plain.panels[0].x.ends[1], columns["time_s"][-1] + columns["width_s"][-1]
    rules = [
        Rule(
            (each["time_s"] - began_s) * ends_s[0] / ends_s[1],
            colour=colour,
            dash="solid",
            upright=True,
            name=kind if number == 0 else "",
        )
        for kind, colour in zip(KINDS, COLOURS, strict=True)
        for number, each in enumerate(each for each in done if each["kind"] == kind)
    ]
    panels = [replace(panel, marks=[*rules, *panel.marks]) for panel in plain.panels]
    panels[-1] = replace(panels[-1], legend=Legend("below", columns=len(KINDS)))
    matplotlib_renderer.save(replace(plain, panels=panels), path)


def console_ratio(given: argparse.Namespace) -> dict[str, Any]:
    """Build at the machine's rate with and without a console and its viewer, in turn."""
    rates: dict[str, list[float]] = {"with": [], "without": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        more = ["measure.output_buffer=32 MB", "measure.stream_buffer=16 MB", *given.set]
        system = stack.enter_context(System(folder, given.units, given.transport, more, ()))
        system.until_whole()
        for number in range(2 * given.comparisons):
            name = ("without", "with")[number % 2]
            with Viewer(folder) if name == "with" else nullcontext():
                time.sleep(SETTLING_S)
                rates[name].append(packets_hz(system, COMPARISON_S))
            note(f"{number + 1}, {name} console: {rates[name][-1]:,.0f} MEPs/s")
        system.end()
        problems = system.left_behind()
    ratios = [a / b for a, b in zip(rates["with"], rates["without"], strict=True)]
    return {
        "benchmark": "event_building_faults, console",
        **{name: getattr(given, name) for name in ("transport", "units")},
        "cores": os.cpu_count(),
        "packets_hz": rates,
        "ratios": [round(each, 4) for each in ratios],
        "median_ratio": round(median(ratios), 4),
        "problems": problems,
    }


def packets_hz(system: System, length_s: float) -> float:
    """Return the rate at which units build packets, by their own counters."""
    begin_s, begin = time.monotonic(), built_meps(system.until_answer())
    time.sleep(length_s)
    end = built_meps(system.until_answer())
    return (end - begin) / (time.monotonic() - begin_s)


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Table to compare the methods, and sentences on their differences."""

from collections.abc import Iterator

from daqloom.base.words import join_names
from daqloom.control.counters.warnings import checks, fates
from daqloom.deployment.fabric_system import fabric_system
from daqloom.report import style
from daqloom.report.style import NOTHING
from daqloom.results.metrics import for_people, label
from daqloom.results.result import Result
from daqloom.scenario.quantities import RATE
from daqloom.scenario.schema.switches import LEVELS
from daqloom.study.methods.all_methods import MethodResults

ROWS = (
    "event_rate_hz",
    "event_rate_bound_hz",
    "written_event_rate_hz",
    "throughput_bps",
    "node_throughput_bps",
    "phase_s",
    "barrier_share",
    "barrier_s.whole",
    "barrier_s.waiting",
    "barrier_s.releasing",
    "idle_share",
    "waiting_share.source",
    "waiting_share.builder",
    "waiting_share.network",
    "collection_latency_s.mean",
    "collection_latency_s.p50",
    "collection_latency_s.p99",
    "write_latency_s.mean",
    "link_utilisation.host.up",
    "link_utilisation.access.down",
    *(f"buffer_peak_bytes.{level}" for level in LEVELS),
    "packets_dropped",
    "retransmission_timeouts",
    "events_built",
    "events_incomplete",
    "events_discarded",
    "events_checked",
    "events_wrong",
    "events_repeated",
    "events_accepted",
    "events_stored",
    "events_unstored",
    "events_storing",
    "stored_throughput_bps",
    "units_lost",
    "host_pressure",
    "host_lateness",
)
"""Metrics in rows of the table, which mean the same in all methods."""
FAULT_COUNTS = ("faults_begun", "faults_detected", "faults_recovered")
FAULT_METRICS = ("fault_detection_s", "fault_recovery_s", "fault_events_lost")
"""Metrics that each injected fault has."""
FLOW_METRICS = ("flow_throughput_bps", "flow_messages", "flow_messages_lost")
"""Metrics that each flow has."""


def head(found: MethodResults) -> list[str]:
    """Return the column names: empty, then the name of each method."""
    return ["", *(result.method for result in found.results)]


def rows(found: MethodResults) -> list[list[str]]:
    """Return rows of text. A dash stands for a metric that a method lacks."""
    table = [["time counted", *(_time_span(found, result) for result in found.results)]]
    injected, flows = found.scenario.faults.injected, found.scenario.flows
    of_faults = (f"{metric}.{name}" for metric in FAULT_METRICS for name in injected)
    of_flows = (f"{metric}.{name}" for metric in FLOW_METRICS for name in flows)
    for path in (*ROWS, *of_flows, *FAULT_COUNTS, *of_faults):
        values = [value_of(result, path) for result in found.results]
        known = [value for value in values if value is not None]
        if not known or (path.partition(".")[0].endswith("share") and not any(known)):
            continue
        cells = [NOTHING if value is None else for_people(path, value) for value in values]
        table.append([label(path), *cells])
    return table


def value_of(result: Result, path: str) -> float | None:
    """Return a metric of the table. If only parts of the barrier are known, it is their sum."""
    value = result.metric(path)
    if value is not None or path != "barrier_s.whole":
        return value
    parts = [result.metric(f"barrier_s.{part}") for part in ("waiting", "releasing")]
    return sum(part for part in parts if part is not None) if any(parts) else None


def title(found: MethodResults) -> str:
    """Return the title of the comparison, for table, figure and page."""
    scenario = found.scenario
    return scenario.title or scenario.name


def verdict(comparison: MethodResults) -> Iterator[str]:
    """Yield sentences on how the methods differ and how their rates compare."""
    system = fabric_system(comparison.scenario)
    analysed, simulated, measured = (
        comparison.result_of(name) for name in ("analyse", "simulate", "measure")
    )
    links = f"{system.nodes} nodes{_rates(comparison)}"
    reference, named = (simulated, "simulated") if simulated else (analysed, "closed-form")
    reached = _ratio(measured, "measurement", reference, named) if measured and reference else ""
    hosts = comparison.scenario.hosts
    has_costs = hosts.message_cost or hosts.send_rate or hosts.receive_rate
    if simulated and has_costs and not analysed:
        yield f"The simulation has the time that hosts take by [hosts]{reached}."
        reached = ""
    elif analysed and simulated and has_costs:
        yield (
            f"The analysis models only the network, {links}; the simulation has the time, too, "
            f"that hosts take by [hosts]{_ratio(simulated, 'simulation', analysed, 'closed-form')}."
        )
    elif analysed and simulated:
        yield (
            f"Analysis and simulation model only the network, {links}; hosts make and check data "
            f"infinitely fast{_ratio(simulated, 'simulation', analysed, 'closed-form')}."
        )
    elif simulated or analysed:
        one = "The simulation" if simulated else "The analysis"
        yield (
            f"{one} models only the network, {links}; hosts make and check data infinitely fast."
        )
    if comparison.failure:
        yield f"The measurement has no result: {comparison.failure}."
    if measured is None:
        return
    units, cores = (int(measured.engine[name]) for name in ("units", "cores"))
    yield (
        f"The measurement is of {_machines(comparison)}: {_work(comparison, units, cores)}"
        f"{reached}."
    )
    if (
        units > cores
        and comparison.scenario.measure.launch == "local"
        and not comparison.scenario.measure.has_lab
        and value_of(measured, "barrier_s.whole")
    ):
        yield (
            f"A measured barrier lasts until each of the {units} units has been scheduled on a "
            "core: its length is that of the system's scheduling, not of the barrier protocol."
        )
    yield from checks(measured)
    yield from fates(measured)


def _rates(found: MethodResults) -> str:
    """Return the link rate in words, or an empty text for racks, whose links have several rates."""
    rate = found.scenario.network.links.rate
    return f" at {RATE.format(rate)} each" if rate else ""


def _machines(found: MethodResults) -> str:
    measure = found.scenario.measure
    if measure.has_lab:
        return "the same network, made of namespaces and queues of this machine"
    if measure.launch == "local":
        return "this machine, its memory and its cores"
    return "the machines that it ran on, and the network between them"


def _work(found: MethodResults, units: int, cores: int) -> str:
    measure = found.scenario.measure
    works = [f"send fragments over {measure.transport}"]
    if measure.shares_memory:
        works = ["copy fragments from one process's memory into another's"]
    if measure.source == "generator" and measure.content == "every":
        works.insert(0, "generate every fragment")
    if measure.sink == "check":
        is_stored = found.scenario.storage.units > 0
        works.append("store accepted events" if is_stored else "check every byte")
    if measure.sink == "file":
        works.append("write files")
    where = f" on {cores} cores" if measure.launch == "local" else ""
    return f"{units} units{where} {join_names(works)}"


def _ratio(one: Result, named: str, other: Result, other_named: str) -> str:
    mine, theirs = one.metric("event_rate_hz"), other.metric("event_rate_hz")
    if not mine or not theirs:
        return ""
    return f"; the {named} reaches {100 * mine / theirs:.3g} % of the {other_named} rate"


def _time_span(found: MethodResults, result: Result) -> str:
    """Return the time span of the counted events in words, or a dash for closed forms."""
    run = found.scenario.run
    if result.method == "analyse":
        return NOTHING
    if result.method == "simulate":
        return f"{style.seconds(run.duration - run.warmup)}, virtual"
    rate, events = result.metric("event_rate_hz"), result.metric("events_built")
    return f"{style.seconds(events / rate)}, real" if rate and events else NOTHING

"""The names that a result may carry, each with its unit and its meaning.

This table is the only place where a metric is described: `docs/reference/metrics.md` is written
from it (`python -m daqloom.metrics`), and `Result` refuses a name that is not in it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a result. `name` is a dotted path; `*` stands for any one name."""

    name: str
    unit: str
    given_by: str
    meaning: str

    def matches(self, path: str) -> bool:
        """Whether `path` (dotted) is this metric."""
        mine, theirs = self.name.split("."), path.split(".", maxsplit=self.name.count("."))
        return len(mine) == len(theirs) and all(
            m in ("*", t) for m, t in zip(mine, theirs, strict=True)
        )


_BOTH = "analyse, simulate, measure"
_RUN = "simulate, measure"
_SIMULATE = "simulate"
_FORMULA = "analyse, simulate"
_ANALYSE = "analyse"

METRICS: tuple[Metric, ...] = (
    Metric(
        "event_rate_hz",
        "Hz",
        _BOTH,
        "Events built per second, after the warm-up. `analyse` gives it of fabrics, for the long "
        "run.",
    ),
    Metric(
        "event_rate_bound_hz",
        "Hz",
        _ANALYSE,
        "The rate at which the first of source links, uplinks, access links or hosts is full: "
        "no buffer, however deep, carries more. On a fabric, at which the first part is busy all "
        "the time: no barrier, however cheap, lets more through.",
    ),
    Metric(
        "throughput_bps",
        "bit/s",
        _BOTH,
        "Payload of the events built, per second, after the warm-up. Headers are not counted. "
        "`analyse` gives it of fabrics.",
    ),
    Metric("events_built", "events", _RUN, "Events collected in full after the warm-up."),
    Metric(
        "events_incomplete",
        "events",
        _RUN,
        "Events that were given to a builder and not collected in full when the run ended.",
    ),
    Metric(
        "events_waiting",
        "events",
        _RUN,
        "Events that no builder had taken when the run ended: every builder was full.",
    ),
    Metric(
        "collection_latency_s.min",
        "s",
        _BOTH,
        "From the assignment of an event to the moment its builder has taken the last fragment: "
        "the fastest event. `analyse` gives that of an event alone in the network.",
    ),
    Metric("collection_latency_s.mean", "s", _RUN, "The same, mean over the events built."),
    Metric("collection_latency_s.p50", "s", _RUN, "The same, median."),
    Metric("collection_latency_s.p99", "s", _RUN, "The same, 99th percentile."),
    Metric("collection_latency_s.max", "s", _RUN, "The same, slowest event."),
    Metric(
        "buffer_peak_bytes.tor",
        "B",
        _BOTH,
        "Most bytes that the top-of-rack switch held at one instant, as frames (Ethernet header "
        "and FCS included, preamble and gap not). `analyse` gives the exact peak of the "
        "superposed triangles.",
    ),
    Metric(
        "buffer_peak_bytes.core",
        "B",
        _RUN,
        "The same for the core switch, all its outputs together.",
    ),
    Metric(
        "incast_margin_bytes",
        "B",
        _ANALYSE,
        "Buffer that one builder's port may take, less what the incast rule asks for: below 0 the "
        "rule BDP + buffer ≥ Σ windows is broken. Absent if the buffer is unlimited.",
    ),
    Metric(
        "units_lost",
        "times",
        "measure",
        "How often a unit was lost in the whole run: ended, silent, stuck or out of reach.",
    ),
    Metric(
        "regroupings",
        "times",
        "measure",
        "How often the units of a running event builder halted and went on with other members or "
        "new connections, whole run.",
    ),
    Metric(
        "refused.*",
        "messages",
        "measure",
        "What the run control and units refused, by cause, whole run: `token` and `strangers` (who "
        "is no part of the run), `method`, `malformed`, `oversized`, `unknown_unit`, `occupied` (a "
        "second process for a unit), `epoch` (of members that are no more), `unasked`, `session`.",
    ),
    Metric(
        "unit_cores",
        "1",
        "measure",
        "Processor cores that a unit's process keeps busy, its sources and sinks among them; mean "
        "over units.",
    ),
    Metric(
        "first_event_s",
        "s",
        "measure",
        "From the start of a unit's data flow, when it is connected to all others, to the first "
        "event that it has built; the slowest unit's.",
    ),
    Metric(
        "overhead_share",
        "1",
        "measure",
        "Of the bytes of the events built, the share that is headers, tables and padding, and no "
        "fragment.",
    ),
    Metric(
        "events_checked",
        "events",
        "measure",
        "Events in which every byte that is there was checked, and right.",
    ),
    Metric("events_wrong", "events", "measure", "Events in which some byte was wrong."),
    Metric("events_repeated", "events", "measure", "Events that a consumer had been given before."),
    Metric("fragments_checked", "fragments", "measure", "Fragments of the events checked."),
    Metric(
        "checked_bytes",
        "B",
        "measure",
        "Their bytes, without headers and padding, which are checked as well.",
    ),
    Metric(
        "events_accounted.*",
        "events",
        "measure",
        "What has become of every event, whole run: of those `begun`, that is up to the last that "
        "a builder unit took, `built`, `incomplete` (delivered with a mask), `dropped` "
        "(incomplete), `discarded` (a full output buffer, or a lost readout unit had not announced "
        "them), `unfinished`: the builder unit that had them was lost, or nobody knows: a unit on "
        "another machine that is killed has last told of itself a heartbeat before.",
    ),
    Metric(
        "waiting_share.*",
        "1",
        "measure",
        "Share of the readout units' time that they slept while it was their turn to send: for the "
        "`source`, for the answer of a `builder`, or for writes under way on the `network`.",
    ),
    Metric("packets_dropped", "packets", _RUN, "Packets that found no room, after the warm-up."),
    Metric("drops_by_port.*", "packets", _RUN, "The same, per output port that dropped any."),
    Metric(
        "drop_fraction",
        "1",
        _SIMULATE,
        "Share of the packets reaching an output of a switch that found no room there, 0 to 1: "
        "dropped / (dropped + delivered by the links that leave switches). A packet that crosses "
        "two switches counts at each. Absent if there were none.",
    ),
    Metric(
        "retransmission_timeouts",
        "time-outs",
        _RUN,
        "Times that a connection's retransmission timer expired, after the warm-up; on a fabric, "
        "whole run.",
    ),
    Metric(
        "timeouts_by_cause.*",
        "time-outs",
        _SIMULATE,
        "The same, by what was lost: `whole_window` (nothing of the flight was heard of), `tail` "
        "(its end), `retransmission` (a segment sent again).",
    ),
    Metric(
        "packets_marked",
        "packets",
        _SIMULATE,
        "Packets that a switch marked with congestion experienced, after the warm-up.",
    ),
    Metric(
        "retransmissions.*",
        "segments",
        _RUN,
        "Segments sent again, by what asked for it: `fast` (SACK or duplicate ACKs), "
        "`probe` (tail-loss probe), `timeout` (retransmission timer). On a fabric, whole run: "
        "packets that senders went back over, told by the receiver (`nak`) or by the timer.",
    ),
    Metric(
        "link_utilisation.*",
        "1",
        _BOTH,
        "Share of a link's time that frames, preambles and gaps took, 0 to 1: of one link "
        "(`access.3.down`) or the mean of all of a kind (`access.down`). `analyse` gives the share "
        "that the offered rate would take, 1 at most.",
    ),
    Metric(
        "node_throughput_bps",
        "bit/s",
        _BOTH,
        "On a fabric: payload that a node with a readout unit pushes per second, copies to "
        "itself included, mean.",
    ),
    Metric(
        "events_discarded",
        "events",
        _RUN,
        "On a fabric: events for which a builder's output buffer had no room.",
    ),
    Metric("phases", "phases", _RUN, "Of linear shifting, all nodes together."),
    Metric("phase_s", "s", _BOTH, "Length of a phase, mean."),
    Metric(
        "dummy_share",
        "1",
        _FORMULA,
        "Share of the schedule's slots without a builder unit, dummies mostly.",
    ),
    Metric(
        "barrier_share",
        "1",
        _FORMULA,
        "Share of the nodes' time from entering a barrier to being released, 0 to 1.",
    ),
    Metric("barrier_rate_hz", "Hz", _FORMULA, "Barriers that all nodes have left, per second."),
    Metric(
        "barrier_s.*",
        "s",
        _FORMULA,
        "Mean time of a node in a barrier: `waiting` until the slowest has entered, `releasing` "
        "from then on, which is what the barrier itself costs. `measure` gives the `whole`, and of "
        "it `p50`, `p99` (within 3 %), `max`, and `least` and `most`: the means of the unit that "
        "comes last and of the one that comes first, which is how far nodes are apart.",
    ),
    Metric(
        "idle_share",
        "1",
        _FORMULA,
        "Share of the nodes' time with nobody to send to, a dummy's turn, 0 to 1; without what "
        "a barrier makes of it.",
    ),
    Metric(
        "processor_share",
        "1",
        _FORMULA,
        "Share of the nodes' time that their processors send and receive messages, 0 to 1.",
    ),
    Metric(
        "control_messages",
        "messages",
        _SIMULATE,
        "On a fabric: messages that carry no fragments, after the warm-up.",
    ),
    Metric(
        "source_buffer_full",
        "MFPs",
        _SIMULATE,
        "Multi-fragment packets that had to wait for room in the source's buffer.",
    ),
    Metric(
        "trigger_stopped_share.*",
        "1",
        _SIMULATE,
        "Share of the time in which a full card stopped the trigger, so that events were lost, by "
        "what it waited for: the `acknowledge` of its data, or room in the host's `memory`.",
    ),
    Metric(
        "writes_overran",
        "writes",
        _SIMULATE,
        "Writes under way when their time window was over.",
    ),
    Metric(
        "flow_throughput_bps.*",
        "bit/s",
        _SIMULATE,
        "Of a flow, by its name: payload of the messages that have arrived, per second, after the "
        "warm-up; all its sources together, like the next ones.",
    ),
    Metric("flow_messages.*", "messages", _SIMULATE, "So many of them."),
    Metric(
        "flow_latency_s.*",
        "s",
        _SIMULATE,
        "From the post of a message until its receiver has it, those that arrived after the "
        "warm-up: `NAME.min`, `NAME.mean`, `NAME.p50`, `NAME.p99`, `NAME.max` of the flow NAME.",
    ),
    Metric(
        "flow_wait_s.*",
        "s",
        _SIMULATE,
        "PortXmitWait of the ports of a flow's sources, whole run: time with packets to send and "
        "nothing sent.",
    ),
    Metric(
        "inferred_buffer_bytes.*",
        "B",
        _RUN,
        "Input buffer of a switch's port for a lane, as PortXmitWait tells it where a burst comes "
        "in the way of a stream: `least`, and `most` if the stream's port had to wait at all.",
    ),
    Metric(
        "xmit_wait_s.*",
        "s",
        _SIMULATE,
        "What PortXmitWait counts, all outputs together, whole run: time that an output stood idle "
        "with packets for it, for want of `credits`, or because the inputs that hold them sent "
        "elsewhere (`crossbar`).",
    ),
    Metric(
        "write_latency_s.min",
        "s",
        _SIMULATE,
        "On a fabric: from the post of an RDMA write of fragments to another node until its sender "
        "knows that it is done, of those done after the warm-up: the fastest.",
    ),
    Metric("write_latency_s.mean", "s", _SIMULATE, "The same, mean."),
    Metric("write_latency_s.p50", "s", _SIMULATE, "The same, median."),
    Metric("write_latency_s.p99", "s", _SIMULATE, "The same, 99th percentile."),
    Metric("write_latency_s.max", "s", _SIMULATE, "The same, slowest."),
    Metric(
        "packets_discarded",
        "packets",
        _SIMULATE,
        "What PortXmitDiscards counts, all outputs together, whole run: packets that were first of "
        "their queue in a switch for the lifetime. Absent if there is none.",
    ),
    Metric(
        "writes_failed",
        "writes",
        _SIMULATE,
        "RDMA writes, whole run, of connections that gave up: too many timeouts in a row.",
    ),
    Metric("packet_hops", "packets", _SIMULATE, "Frames delivered over a link, one each link."),
    Metric("ack_hops", "packets", _SIMULATE, "Those of them that carried no payload."),
)

OF_RACKS = frozenset(
    {
        "events_waiting",
        "buffer_peak_bytes",
        "incast_margin_bytes",
        "drop_fraction",
        "timeouts_by_cause",
        "packets_marked",
        "ack_hops",
    }
)
"""Metrics, by the first part of their names, that a fabric never has."""
OF_FABRICS = frozenset(
    {
        "node_throughput_bps",
        "events_discarded",
        "phases",
        "phase_s",
        "dummy_share",
        "barrier_share",
        "barrier_rate_hz",
        "barrier_s",
        "idle_share",
        "processor_share",
        "control_messages",
        "source_buffer_full",
        "trigger_stopped_share",
        "writes_overran",
        "xmit_wait_s",
        "flow_throughput_bps",
        "flow_messages",
        "flow_latency_s",
        "flow_wait_s",
        "inferred_buffer_bytes",
        "write_latency_s",
        "packets_discarded",
        "writes_failed",
    }
)
"""Metrics that a rack never has."""

ENGINE: tuple[Metric, ...] = (
    Metric("wall_s", "s", _BOTH, "Time on the clock."),
    Metric("cpu_s", "s", _BOTH, "Time on the processor, all threads together."),
    Metric("virtual_s", "s", _SIMULATE, "Simulated time, warm-up included."),
    Metric("sim_events", "events", _SIMULATE, "Events of the simulator's queue."),
    Metric("packet_hops", "packets", _SIMULATE, "Frames delivered over a link, whole run."),
    Metric(
        "packet_hops_per_cpu_s", "1/s", _SIMULATE, "Packet hops divided by the processor's time."
    ),
    Metric("pending_events_peak", "events", _SIMULATE, "Most events in the queue at one instant."),
    Metric("peak_rss_bytes", "B", _BOTH, "Most memory that the process held."),
)


def unknown(metrics: Mapping[str, object]) -> Iterable[str]:
    """Dotted names in `metrics` (one level of nesting) that `METRICS` does not describe."""
    for path in flatten(metrics):
        if described(path) is None:
            yield path


@functools.lru_cache(maxsize=1 << 14)
def described(path: str) -> Metric | None:
    """The description of a metric by its dotted name; None if there is none."""
    return next((metric for metric in METRICS if metric.matches(path)), None)


_PREFIXES = {12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
UNITS = {"bytes": "B", "s": "s", "hz": "Hz", "bps": "b/s"}


def for_people(name: str, value: object) -> str:
    """A number with the unit that its name ends in: buffer_peak_bytes.tor, 47.5e6 → 47.5 MB."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    root = name.partition(".")[0]
    if root == "link_utilisation" or root.endswith("share"):
        return f"{value:.1%}"
    unit = UNITS.get(root.rpartition("_")[2])
    if unit is None:
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    power = next((p for p in _PREFIXES if abs(value) >= 10.0**p), 0)
    return f"{value / 10.0**power:.4g} {_PREFIXES[power]}{unit}"


def flatten(metrics: Mapping[str, object]) -> dict[str, object]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`."""
    flat: dict[str, object] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat


def reference() -> str:
    """The text of `docs/reference/metrics.md`."""
    return "\n".join(
        [
            "# Metrics",
            "",
            "<!-- Written by `python -m daqloom.metrics`; edit src/daqloom/metrics.py instead. -->",
            "",
            "Every method returns the same record; `--json` prints it. A name carries its unit as",
            "a suffix. **A number that a method cannot give is absent, never zero.**",
            "",
            "| field | what it is |",
            "|---|---|",
            "| `schema` | version of this layout: 1 |",
            "| `scenario`, `scenario_hash` | name, and a digest of every resolved value |",
            "| `method` | `analyse`, `simulate` or `measure` |",
            "| `seed` | seed of the random streams; absent where none was drawn |",
            "| `version` | version of daqloom |",
            "| `metrics` | the numbers below |",
            "| `analysis` | only from `analyse`: one entry per closed form, see below |",
            "| `engine` | what the answer cost |",
            "| `warnings` | sentences that a reader of the numbers should know |",
            "| `series` | time series and histograms; written on request only |",
            "",
            "## `metrics`",
            "",
            *_table(METRICS),
            "",
            "## `analysis`",
            "",
            "Each entry says with `valid` whether the conditions of its formula hold in this",
            "scenario, and names in `failing` the first one that does not. What the scenario has",
            "and the formula leaves out (random arrivals, say) is in `warnings`.",
            "",
            "| entry | value | what it is |",
            "|---|---|---|",
            *(f"| `{name}` | {value} | {meaning} |" for name, value, meaning in ANALYSIS),
            "",
            "## `engine`",
            "",
            *_table(ENGINE),
            "",
        ]
    )


ANALYSIS: tuple[tuple[str, str, str], ...] = (
    (
        "exact",
        "`value_bytes`",
        "Exact peak of the superposed triangles of periodic events. `events` says how many "
        "overlap there.",
    ),
    (
        "published",
        "`value_bytes`",
        "The published formula for the same peak, with its own count of overlapping events. It "
        "counts too many: the value lies below the exact one, and below zero at low load.",
    ),
    (
        "back_to_back",
        "`value_bytes`",
        "Peak when events come in back to back, as fast as the input carries them. However "
        "events arrive, the buffer holds no more while they are given to builders in turn.",
    ),
    (
        "bdp",
        "`value_bytes`",
        "The bandwidth-delay-product rule: round-trip time times the rate of all access links. "
        "`per_port_bytes` is the part of one link, `rtt_s` the round trip of a full frame.",
    ),
    (
        "incast",
        "`value_bytes`",
        "Buffer that one builder's port needs by the incast rule BDP + buffer ≥ Σ windows. "
        "`windows_bytes` is the sum, `bdp_bytes` the product, `buffer_bytes` what one port may "
        "take in this switch (absent if unlimited), `satisfied` whether the rule holds.",
    ),
    (
        "rate_bounds_hz",
        "one for each part",
        "Event rate at which source links, uplinks, access links, hosts or the builders' "
        "concurrent events are busy all the time. The least is `event_rate_bound_hz`. On a fabric "
        "the parts are hosts' links, the fullest link, credits, PCIe, memory, copies, processors, "
        "sources, output buffers; the schedule with its dummies and conflicts; of DAQPIPE credits, "
        "parallel sends and time slots. A part that takes no time is left out.",
    ),
    (
        "overhead",
        "`event_frame_bytes`",
        "An event as buffered frames. `mean_frame_bytes` and `packets` describe them, "
        "`wire_share` is the part of a link's rate that frames can take.",
    ),
    (
        "phase",
        "`value_s`",
        "On a fabric: length of a phase, mean over a round. `links_s` is what its fullest link "
        "takes of it, `own_s` what the largest node would take alone.",
    ),
    (
        "barrier",
        "`value_s`",
        "What the messages of a barrier cost a phase of equal nodes; `messages` says how many.",
    ),
    (
        "schedule",
        "`phases`",
        "Of a round. In `conflicting` of them flows share a link, up to `worst_flows`.",
    ),
    (
        "window",
        "`value_s`",
        "Length of a time window, in which a node writes so many `multi_event_packets`.",
    ),
    (
        "event",
        "`value_s`",
        "DAQPIPE: what collecting an event takes at least. `limit` names the part that bounds "
        "the rate.",
    ),
    (
        "link",
        "`payload_bps`",
        "Payload that a link of a fabric carries while as much comes the other way; "
        "`headers_bps` and `credits_bps` are what headers and credits alone would leave.",
    ),
    (
        "message",
        "`value_s`",
        "From asking for a message of no data until the farthest node has taken it in.",
    ),
)


def _table(metrics: Iterable[Metric]) -> list[str]:
    rows = [f"| `{m.name}` | {m.unit} | {m.given_by} | {m.meaning} |" for m in metrics]
    return ["| name | unit | given by | meaning |", "|---|---|---|---|", *rows]


if __name__ == "__main__":
    print(reference(), end="")

"""The text of `docs/reference/metrics.md`, generated from the declarations."""

import textwrap
from collections.abc import Iterable

from daqloom.base.words import rows_of
from daqloom.results.metrics import COST, SUBJECTS, TAKES, Metric

REFERENCE = """\
# Metrics

<!-- Written by `python -m daqloom.results.metrics`; edit src/daqloom/results/metrics/ instead. -->

Every method returns the same record; `--json` prints it. A name carries its unit as
a suffix. **A number that a method cannot give is absent, never zero.**

| field | meaning |
|---|---|
| `schema` | version of this layout: 1 |
| `scenario`, `scenario_hash` | name, and a digest of every resolved value |
| `method` | `analyse`, `simulate` or `measure` |
| `seed` | seed of the random streams; absent where nothing is random |
| `fingerprint` | only from `simulate`: a hash of all events of the run, in order |
| `interrupted` | true if Ctrl-C ended the run early; else absent |
| `failure` | only from `measure`: why the run failed before its end; else absent |
| `version`, `commit` | version of daqloom, and the commit of its sources (absent if unknown) |
| `metrics` | the numbers below |
| `analysis` | only from `analyse`: one entry per closed form, see below |
| `engine` | cost of the computation: time and memory |
| `warnings` | sentences on the limits of these numbers |
| `assumed` | keys that the scenario leaves out, with their values; absent if none |
| `series` | time series and histograms; written on request only |

## `metrics`

Tables and figures show labels. Shares have the unit 1 and are shown in per cent.
Quantiles (`p50`, `p99`) are the middle of a bucket of a histogram: within 0.4 % of the exact value
in simulation, within 3 % in a measurement, whose maxima are the end of a bucket. Means are exact.

A method gives a metric for systems with one of the parts in brackets: a protocol, a
transport, a network, or several together; without brackets, for all that it takes:

{takes}

{subjects}
## `analysis`

In each entry, `valid` is whether the conditions of its formula hold in this
scenario, and `failing` names the first one that does not. What the scenario has
and the formula ignores (random arrivals, for example) is in `warnings`.

| entry | value | meaning |
|---|---|---|
{analysis}

## `engine`

{cost}
"""
"""Template of the page; braces mark the generated parts."""

ANALYSIS = """
exact | `value_bytes` |
    Exact peak of the superposed triangles of periodic events, `events` of which overlap at it.
    Windows and requests in flight cap the triangle of an event.
published | `value_bytes` |
    The published formula for the same peak, valid within 5 % of it. It counts too many overlapping
    events: the value is below the exact one, and negative at low load.
back_to_back | `value_bytes` |
    Peak when events arrive back to back at the full input rate. This bounds the occupancy for any
    arrival process, as long as events are assigned to builders in turn.
bdp | `value_bytes` |
    The bandwidth-delay-product rule: round-trip time times the rate of all access links.
    `per_port_bytes` is the part of one link, `rtt_s` the round trip of a full frame.
incast | `value_bytes` |
    Buffer that one builder's port needs by the incast rule BDP + buffer ≥ Σ windows.
    `windows_bytes` is the sum of windows, `bdp_bytes` the bandwidth-delay product, `buffer_bytes`
    the buffer available to one port of this switch (absent if unlimited), `satisfied` whether the
    rule holds.
rate_bounds_hz | one for each part |
    Event rate at which source links, uplinks, access links, hosts or the builders' concurrent
    events saturate. The smallest is `event_rate_bound_hz`. On a fabric the parts are hosts' links,
    the most loaded link, credits, PCIe, memory, copies, processors, sources, output buffers; the
    schedule with its dummies and conflicts; a protocol's credits, parallel sends and time slots.
    Infinitely fast parts are left out.
overhead | `event_frame_bytes` |
    An event as buffered frames. `mean_frame_bytes` and `packets` describe them, `wire_share` is the
    part of a link's rate that frames can take.
phase | `value_s` |
    On a fabric: mean length of a phase over a round. `links_s` is the time of its most loaded link,
    `own_s` the time of the largest node alone, `messages` the number that a node sends per phase
    for barriers and to ask builder units that set the pace and to answer. With these, `asking_s` is
    the time of a request and its answer without waiting; with barriers of groups also
    `at_most_s` the length without contention for links if all nodes were in step.
barrier | `value_s` |
    Time that a barrier adds to a phase of equal nodes, with the number of its `messages`, of all
    groups together.
schedule | `phases` |
    Phases of a round. In `conflicting` of them transfers share a link, up to `worst_flows`.
window | `value_s` |
    Length of a time window, in which a node writes `multi_event_packets` MEPs.
event | `value_s` |
    Smallest event-building latency of a protocol with credits. `limit` names the part that bounds
    the rate.
link | `payload_bps` |
    Payload rate of a fabric's link with equal traffic in the other direction; `headers_bps` and
    `credits_bps` are the payload rates that headers and credits alone allow.
ring | `best_share` |
    Nodes on a ring: the largest of the shares `ring_share.in_step`, `.out_of_step` and
    `.builder_paced`; `best` names it. `out_of_step_from_s` and `builder_paced_from_s` are
    the mean delays from which on these beat being in step: 0 if at any, absent if at none.
message | `value_s` |
    Latency of an empty message, from the post until the farthest node has received it.
"""
"""Entry, value, meaning."""


def reference() -> str:
    """Return the text of `docs/reference/metrics.md`."""
    return REFERENCE.format(
        takes=_lines(
            textwrap.fill(f"- `{method}` takes {systems}", 100, subsequent_indent="  ")
            for method, systems in TAKES.items()
        ),
        subjects="\n".join(f"### {name}\n\n{_table(part)}\n" for name, part in SUBJECTS.items()),
        analysis=_lines(
            f"| `{name}` | {value} | {text} |" for name, value, text in rows_of(ANALYSIS)
        ),
        cost=_table(COST),
    )


def _table(metrics: Iterable[Metric]) -> str:
    return "| name | label | unit | given by | meaning |\n|---|---|---|---|---|\n" + _lines(
        f"| `{m.name}` | {m.label} | {m.unit} | {m.givers()} | {m.meaning} |" for m in metrics
    )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)

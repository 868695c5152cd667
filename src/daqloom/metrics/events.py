"""Metrics of the events built: rates, counts, latency."""

from __future__ import annotations

from daqloom.metrics.metric import Metric, Parts

PULL, SHIFT, DAQPIPE, BUILDERS = Parts.PULL, Parts.SHIFT, Parts.DAQPIPE, Parts.BUILDERS
BUILT = Parts.BUILT
INCAST, PHASES, CREDITS = Parts.INCAST, Parts.PHASES, Parts.CREDITS

EVENTS: tuple[Metric, ...] = (
    Metric(
        "event_rate_hz",
        "Hz",
        "event rate",
        "Events built per second after the warm-up: `events_built` divided by the time counted. "
        "`analyse` gives the long-term rate.",
        analyse=PHASES | CREDITS,
        simulate=PULL | BUILDERS,
        measure=BUILT,
    ),
    Metric(
        "written_event_rate_hz",
        "Hz",
        "event rate, fragments written",
        "Fragments written per second divided by the fragments of an event. Linear "
        "shifting completes all events of a round at its end, so that `event_rate_hz` of a short "
        "run can be wrong by the events of one round; this rate needs only a few phases and "
        "converges to the same value.",
        analyse=PHASES | CREDITS,
        simulate=BUILDERS,
    ),
    Metric(
        "event_rate_bound_hz",
        "Hz",
        "upper bound of the event rate",
        "Upper bound of the event rate: the rate at which source links, uplinks, access links or "
        "hosts saturate, with buffers of any depth. Over InfiniBand, that at which the first part "
        "is always busy, with barriers of any cost.",
        analyse=INCAST | PHASES | CREDITS,
    ),
    Metric(
        "throughput_bps",
        "bit/s",
        "throughput",
        "Payload of events built per second after the warm-up, without headers. Of flows, payload "
        "of messages received.",
        analyse=PHASES | CREDITS,
        simulate=Parts.EVERY,
        measure=BUILT,
    ),
    Metric(
        "written_throughput_bps",
        "bit/s",
        "throughput, fragments written",
        "Payload of fragments written per second, summed over all nodes, copies "
        "within a node included; it relates to `throughput_bps` as `written_event_rate_hz` does "
        "to `event_rate_hz`.",
        analyse=PHASES | CREDITS,
        simulate=BUILDERS,
    ),
    Metric(
        "node_throughput_bps",
        "bit/s",
        "throughput of a node",
        "Payload that a node with a readout unit sends per second, copies to itself "
        "included; mean over nodes.",
        analyse=PHASES | CREDITS,
        simulate=BUILDERS,
        measure=BUILT,
    ),
    Metric(
        "events_built",
        "events",
        "events built",
        "Complete events built after the warm-up.",
        simulate=PULL | BUILDERS,
        measure=BUILT,
    ),
    Metric(
        "events_in_flight",
        "events",
        "events in flight at the end",
        "Events in flight at the end of the run: assigned to a builder and not yet built. A "
        "measured run ends when none is left.",
        simulate=PULL | DAQPIPE,
    ),
    Metric(
        "events_waiting",
        "events",
        "events not assigned at the end",
        "Events not yet assigned at the end of the run, because all builders were full.",
        simulate=PULL,
        measure=PULL,
    ),
    Metric(
        "events_incomplete",
        "events",
        "events incomplete",
        "Events delivered with fragments missing (masked) because a unit was lost. Simulated "
        "builder units wait for all fragments.",
        measure=BUILT,
    ),
    Metric(
        "events_discarded",
        "events",
        "events discarded",
        "Events discarded because a builder's output buffer was full.",
        simulate=SHIFT,
        measure=BUILDERS,
    ),
    Metric(
        "collection_latency_s.min",
        "s",
        "event latency, minimum",
        "Event-building latency, from the assignment of an event until its builder has the last "
        "fragment: minimum. `analyse` gives that of an event alone in the network.",
        analyse=INCAST | CREDITS,
        simulate=PULL | DAQPIPE,
    ),
    Metric(
        "collection_latency_s.mean",
        "s",
        "event latency, mean",
        "Event-building latency: mean over the events built.",
        simulate=PULL | DAQPIPE,
        measure=BUILT,
    ),
    Metric(
        "collection_latency_s.p50",
        "s",
        "event latency, median",
        "Event-building latency: median.",
        simulate=PULL | DAQPIPE,
        measure=BUILT,
    ),
    Metric(
        "collection_latency_s.p99",
        "s",
        "event latency, 99 %",
        "Event-building latency: 99th percentile.",
        simulate=PULL | DAQPIPE,
        measure=BUILT,
    ),
    Metric(
        "collection_latency_s.max",
        "s",
        "event latency, maximum",
        "Event-building latency: maximum.",
        simulate=PULL | DAQPIPE,
        measure=BUILT,
    ),
)

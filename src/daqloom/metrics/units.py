"""Metrics of readout and builder units: phases, barriers, waiting, processors."""

from __future__ import annotations

from daqloom.metrics.metric import Metric, Parts

SHIFT, BUILDERS, BUILT = Parts.SHIFT, Parts.BUILDERS, Parts.BUILT
PHASES, CREDITS = Parts.PHASES, Parts.CREDITS

UNITS: tuple[Metric, ...] = (
    Metric(
        "phases",
        "phases",
        "phases",
        "Phases of linear shifting completed, summed over nodes.",
        simulate=SHIFT,
        measure=SHIFT,
    ),
    Metric(
        "phase_s",
        "s",
        "length of a phase",
        "Mean length of a phase.",
        analyse=PHASES,
        simulate=SHIFT,
        measure=SHIFT,
    ),
    Metric(
        "dummy_share",
        "1",
        "slots of the schedule without a builder unit",
        "Share of the schedule's slots without a builder unit, mostly dummies, 0 to 1.",
        analyse=PHASES,
        simulate=SHIFT,
    ),
    Metric(
        "barrier_share",
        "1",
        "time in barriers",
        "Share of the nodes' time spent in barriers, from entering to release, 0 to 1.",
        analyse=PHASES,
        simulate=SHIFT,
        measure=SHIFT,
    ),
    Metric(
        "barrier_rate_hz",
        "Hz",
        "barrier rate",
        "Barriers completed by all nodes per second.",
        analyse=PHASES,
        simulate=SHIFT,
    ),
    Metric(
        "barrier_s.waiting",
        "s",
        "barrier, waiting for the slowest",
        "Mean time of a node in a barrier until the slowest node has entered.",
        analyse=PHASES,
        simulate=SHIFT,
    ),
    Metric(
        "barrier_s.releasing",
        "s",
        "barrier, release",
        "Mean time of a node in a barrier after the slowest node has entered, which is the cost of "
        "the barrier itself.",
        analyse=PHASES,
        simulate=SHIFT,
    ),
    Metric(
        "barrier_s.whole",
        "s",
        "length of a barrier",
        "Mean time of a node in a barrier, from entering to release.",
        measure=SHIFT,
    ),
    Metric(
        "barrier_s.p50",
        "s",
        "length of a barrier, median",
        "Time of a node in a barrier: median, within 3 %.",
        measure=SHIFT,
    ),
    Metric(
        "barrier_s.p99",
        "s",
        "length of a barrier, 99 %",
        "Time of a node in a barrier: 99th percentile, within 3 %.",
        measure=SHIFT,
    ),
    Metric(
        "barrier_s.max",
        "s",
        "length of a barrier, maximum",
        "Time of a node in a barrier: maximum, within 3 %.",
        measure=SHIFT,
    ),
    Metric(
        "barrier_s.least",
        "s",
        "length of a barrier, last unit",
        "Mean time in a barrier of the unit that enters last; the difference between `most` and "
        "`least` is the skew of the nodes.",
        measure=SHIFT,
    ),
    Metric(
        "barrier_s.most",
        "s",
        "length of a barrier, first unit",
        "Mean time in a barrier of the unit that enters first.",
        measure=SHIFT,
    ),
    Metric(
        "idle_share",
        "1",
        "time without a partner (dummy)",
        "Share of the nodes' time without a partner to send to (the turn of a dummy), 0 to 1; "
        "barriers not included. `analyse` gives it for time windows.",
        analyse=PHASES,
        simulate=SHIFT,
        measure=SHIFT,
    ),
    Metric(
        "waiting_share.source",
        "1",
        "waiting for the source",
        "Share of the readout units' time in which they wait during their turn to send, 0 to 1: "
        "for data of the source.",
        measure=BUILT,
    ),
    Metric(
        "waiting_share.builder",
        "1",
        "waiting for a builder",
        "Share of the readout units' time in which they wait during their turn to send, 0 to 1: "
        "for the answer of a builder.",
        measure=BUILT,
    ),
    Metric(
        "waiting_share.network",
        "1",
        "waiting for writes in flight",
        "Share of the readout units' time in which they wait during their turn to send, 0 to 1: "
        "for writes in flight on the network.",
        measure=BUILT,
    ),
    Metric(
        "processor_share",
        "1",
        "CPU time for messages",
        "Share of the nodes' time in which their processors send and receive messages, 0 to 1.",
        analyse=PHASES | CREDITS,
        simulate=Parts.BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "unit_cores",
        "cores",
        "cores busy per unit",
        "Cores kept busy by a unit's process, its sources and sinks included; mean over units.",
        measure=BUILT,
    ),
    Metric(
        "control_messages",
        "messages",
        "control messages",
        "Control messages (without fragments), after the warm-up.",
        simulate=BUILDERS,
        measure=BUILT,
    ),
    Metric(
        "source_buffer_full",
        "MFPs",
        "MFPs that found the source's buffer full",
        "Multi-fragment packets (MFPs) that waited because the source's buffer was full.",
        simulate=SHIFT,
        measure=BUILT,
    ),
    Metric(
        "trigger_stopped_share.*",
        "1",
        "time with the trigger stopped",
        "Share of the time in which a full readout card stopped the trigger, so that events were "
        "lost, by what it waited for: the `acknowledge` of its data, or free host `memory`.",
        simulate=SHIFT,
    ),
    Metric(
        "writes_overran",
        "writes",
        "writes beyond their time window",
        "Writes still in flight at the end of their time window.",
        simulate=SHIFT,
    ),
)

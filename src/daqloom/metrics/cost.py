"""What a computation cost: the block `engine` of a result."""

from __future__ import annotations

from daqloom.metrics.metric import TAKES, Metric

ANALYSE, SIMULATE, MEASURE = TAKES["analyse"], TAKES["simulate"], TAKES["measure"]

COST: tuple[Metric, ...] = (
    Metric(
        "wall_s",
        "s",
        "wall-clock time",
        "Wall-clock time.",
        analyse=ANALYSE,
        simulate=SIMULATE,
        measure=MEASURE,
    ),
    Metric(
        "cpu_s",
        "s",
        "CPU time",
        "CPU time, all threads together.",
        analyse=ANALYSE,
        simulate=SIMULATE,
        measure=MEASURE,
    ),
    Metric(
        "virtual_s",
        "s",
        "simulated time",
        "Simulated time, warm-up included.",
        simulate=SIMULATE,
    ),
    Metric(
        "measured_s",
        "s",
        "measured time",
        "Measured time, after the warm-up.",
        measure=MEASURE,
    ),
    Metric(
        "sim_events",
        "events",
        "simulator events",
        "Simulator events executed.",
        simulate=SIMULATE,
    ),
    Metric(
        "packet_hops",
        "packets",
        "packet hops",
        "Frames delivered, counted on each link, whole run.",
        simulate=SIMULATE,
    ),
    Metric(
        "packet_hops_per_cpu_s",
        "1/s",
        "packet hops per CPU second",
        "Packet hops per second of CPU time.",
        simulate=SIMULATE,
    ),
    Metric(
        "pending_events_peak",
        "events",
        "largest event queue",
        "Largest number of simulator events in the queue.",
        simulate=SIMULATE,
    ),
    Metric(
        "peak_rss_bytes",
        "B",
        "peak memory",
        "Peak memory of the process; of a measured run, that of the largest unit.",
        simulate=SIMULATE,
        measure=MEASURE,
    ),
    Metric(
        "units",
        "units",
        "units",
        "Units that ran.",
        measure=MEASURE,
    ),
    Metric(
        "cores",
        "cores",
        "cores",
        "Cores of this machine that units could run on.",
        measure=MEASURE,
    ),
)

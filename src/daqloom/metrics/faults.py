"""Metrics of runs in which something breaks: how soon it is known, and what it costs."""

FAULTS = """
faults_begun | times | faults begun | simulate (FAULTED), measure (FAULTED) |
    How often something of `[faults.injected]` broke. A unit that is lost at that time is not broken
    again, which the run's log tells.
faults_detected | times | faults detected | simulate (FAULTED), measure (FAULTED) |
    How many of these became known, as `fault_detection_s` says. A fault that is over within the
    fault timeout need not be.
faults_recovered | times | faults recovered from | simulate (FAULTED), measure (FAULTED) |
    After how many of these the throughput was again what it was, as `fault_recovery_s` says.
fault_detection_s.* | s | time to detect a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until it is known. Measured: its unit is declared lost, or,
    of a link, all units regroup because they do not reach each other; simulated: both ends of a
    link know that it is down. By the name of the fault; mean over all times that it broke and was
    detected.
fault_recovery_s.* | s | time to recover from a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until the throughput is again 95 % of what it was, times the
    share of the members that are left. What it was is the median of the ten bins of the series
    `throughput` before the fault. By the name of the fault; mean over all times that the run
    recovered before the next fault began. 0: it never was lower.
fault_events_lost.* | events | events that a fault cost | simulate (REGROUPED), measure (FAULTED) |
    Events not built whole (incomplete, dropped, discarded, unfinished or skipped: see
    `events_accounted`) from the beginning of a fault until the next one begins or the run ends. By
    the name of the fault, all times that it broke together.
packets_lost.* | packets | packets lost to faults | simulate (FAULTED) |
    Packets lost to faults: `on_wire` (by bit errors, or as the link went down); on InfiniBand also
    `link_down` (dropped by an output whose link is known to be down) and `no_route`, which on
    Ethernet are among `packets_dropped`. Over the whole run; on Ethernet after the warm-up.
"""

"""Metrics of runs with faults: number, detection, recovery and lost events."""

FAULTS = """
faults_begun | times | faults begun | simulate (FAULTED), measure (FAULTED) |
    Number of times that faults of `[faults.injected]` began. A unit that is lost at that time is
    not broken again, which the run's log records.
faults_detected | times | faults detected | simulate (FAULTED), measure (FAULTED) |
    Number of detected faults, see `fault_detection_s`. A fault shorter than the fault timeout can
    remain undetected.
faults_recovered | times | faults recovered from | simulate (FAULTED), measure (FAULTED) |
    Number of faults after which the throughput recovered: see `fault_recovery_s`.
fault_detection_s.* | s | time to detect a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until its unit is declared lost. For a link, measured: until
    all units regroup because they do not reach each other; simulated: until both ends know that it
    is down. By name of the fault; mean over all times that the fault began and was detected.
fault_recovery_s.* | s | time to recover from a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until the throughput has recovered: the end of the first dip
    after the fault in the series `throughput`. The expected throughput is that before the fault,
    times the share of the remaining members. A bin is low if it is 5 % below, or 1.5 standard
    deviations (at most half) where the bins before the fault fluctuate. A dip is a series of bins
    whose probability as chance is below 0.3 %; 0: no dip. A recovery is never before the detection
    and the end of the regrouping that follows. Absent without recovery before the next fault. By
    name of the fault; mean over all recoveries.
fault_events_lost.* | events | events lost to a fault | simulate (REGROUPED), measure (FAULTED) |
    Events not built whole (incomplete, dropped, discarded, unfinished or skipped: see
    `events_accounted`) from the beginning of a fault until the next one begins or the run ends. All
    events are incomplete from the loss of a readout unit until it is back. By name of the fault,
    summed over all times that the fault began.
packets_lost.* | packets | packets lost to faults | simulate (FAULTED) |
    Packets lost to faults: `on_wire` (by bit errors, or as the link went down); on InfiniBand also
    `link_down` (dropped by an output whose link is known to be down) and `no_route`, which on
    Ethernet are among `packets_dropped`. Over the whole run; on Ethernet after the warm-up.
"""

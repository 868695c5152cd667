"""Metrics of runs with faults: number, detection, recovery and lost events."""

FAULTS = """
faults_begun | times | faults begun | simulate (FAULTED), measure (FAULTED) |
    Times that something of `[faults.injected]` broke. A unit that is lost at that time is not
    broken again, which the run's log records.
faults_detected | times | faults detected | simulate (FAULTED), measure (FAULTED) |
    Number of these that became known, as in `fault_detection_s`. A fault that is over within the
    fault timeout need not be.
faults_recovered | times | faults recovered from | simulate (FAULTED), measure (FAULTED) |
    Number of these after which the throughput was again what it was: see `fault_recovery_s`.
fault_detection_s.* | s | time to detect a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until it is known: its unit is declared lost. Of a link,
    measured: all units regroup because they do not reach each other; simulated: both ends know that
    it is down. By the name of the fault; mean over all times that it broke and was detected.
fault_recovery_s.* | s | time to recover from a fault | simulate (FAULTED), measure (FAULTED) |
    Time from the beginning of a fault until the throughput is again what it was, times the share of
    the members that are left: the end of the first dip after the fault in the series `throughput`.
    A bin is lower from 5 % below what it was; where the bins before the fault fluctuate, from 1.5
    standard deviations below, at most half. A dip is what these bins allow as chance with a
    probability below 0.3 %; 0: there is none. A recovery is never before the detection and the end
    of the regrouping that follows. Absent if there is none before the next fault. By the name of
    the fault; mean over all times that the run recovered.
fault_events_lost.* | events | events that a fault cost | simulate (REGROUPED), measure (FAULTED) |
    Events not built whole (incomplete, dropped, discarded, unfinished or skipped: see
    `events_accounted`) from the beginning of a fault until the next one begins or the run ends. All
    events are incomplete from the loss of a readout unit until it is back. By the name of the
    fault, all times that it broke together.
packets_lost.* | packets | packets lost to faults | simulate (FAULTED) |
    Packets lost to faults: `on_wire` (by bit errors, or as the link went down); on InfiniBand also
    `link_down` (dropped by an output whose link is known to be down) and `no_route`, which on
    Ethernet are among `packets_dropped`. Over the whole run; on Ethernet after the warm-up.
"""

"""Metrics of real runs: checked data, the outcome of every event, lost units."""

LIVE = """
events_accounted.* | events | fate of events | simulate (REGROUPED), measure |
    Fate of each event over the whole run: of those `begun`, up to the last one granted by a builder
    unit, `built`, `incomplete` (delivered with fragments missing), `dropped` (because incomplete,
    or because nothing of them came), `discarded` (the output buffer was full, or a lost readout
    unit had not announced them), `not_processed` (built, complete or not, and lost with a killed
    builder unit before its sink had processed them; not with `sink = "user"`, whose consumer keeps
    the buffer), `not_written` (built, complete or not, and not written, or without some sources:
    `sink = "file"`), `unfinished` (granted by a builder unit that was then lost), `skipped` (not
    known to be granted by any builder unit: it was lost before, or its machine was lost with the
    counters since its last heartbeat). A simulated run ends while events are `in_flight`.
events_not_processed | events | events not processed | measure |
    Events built and then lost with a killed builder unit before its sink had processed them, over
    the whole run. `events_built` has them.
events_not_written | events | events not written | measure |
    Events built but not written to files, or without some sources, over the whole run.
events_checked | events | events checked, every byte | measure |
    Events checked byte by byte and found correct: compared with what the generator makes, or, of a
    replay, with the checksums of the recording.
events_wrong | events | events wrong | measure |
    Events with a wrong byte.
events_unchecked | events | events not checked | measure |
    Replayed events that could not be checked: files of the recording are not at their builder unit,
    or those without indices are larger than 250 MB together.
events_repeated | events | duplicate events | measure |
    Duplicates: events delivered to a consumer again.
fragments_checked | fragments | fragments checked | measure |
    Fragments of the events checked.
checked_bytes | B | bytes checked | measure |
    Bytes of the fragments checked, without headers and padding, which are checked too.
overhead_share | 1 | headers and padding | measure |
    Overhead: share of headers, tables and padding in the bytes of the events built, 0 to 1.
first_event_s | s | time to the first event | measure |
    Time from the start of a unit's data flow, when it is connected to all others, to its first
    event built; the slowest unit's.
units_lost | times | units lost | simulate (REGROUPED), measure |
    Losses of units over the whole run: ended, silent, stuck or unreachable.
regroupings | times | regroupings | simulate (REGROUPED), measure |
    Regroupings over the whole run: the units halted and continued with other members or new
    connections.
host_pressure | 1 | processor pressure | measure (LAB) |
    Share of time in which some process of this machine waited for a core (pressure stall
    information), 0 to 1. With a software switch, above 0.7 a laboratory leaves out 99th percentiles
    and peaks of buffers, above 0.8 means of latencies. Absent where the kernel does not report it.
host_lateness | 1 | lateness of the machine | measure (LAB) |
    Share of time by which a program that a timer wakes was woken late, where that was longer than
    a token bucket of the slowest port of a laboratory lasts, 0 to 1. Above 0.07 a laboratory leaves
    out 99th percentiles and peaks of buffers, above 0.075 means of latencies; above 0.45 the run
    fails. With a software switch the limits are lower.
host_drops.* | packets | packets dropped in hosts | measure (LAB) |
    Packets that a laboratory's switches did not drop and no program got, over the whole run:
    `cable` (arrived at the end of a cable and dropped by the kernel, whose queue was full),
    `socket` (dropped by the TCP of a host: receive queue or backlog full). Absent if there were
    none.
packets_unaccounted | packets | packets not accounted for | measure (LAB) |
    Packets sent in a laboratory over the whole run that have not arrived, do not wait, and were
    dropped nowhere: 0, or the laboratory is at fault.
refused.* | messages | refused | measure |
    Calls and messages refused by the run control and units over the whole run, by cause: `token`
    and `strangers` (not part of the run), `method`, `malformed`, `oversized`, `silent`,
    `unknown_unit`, `version` (of a unit of another version), `occupied` (a second process for a
    unit), `epoch` (of an earlier epoch), `unasked`, `session`. Absent if there were none.
"""

"""Metrics of readout and builder units: phases, barriers, waiting, processors."""

UNITS = """
phases | phases | phases | simulate (SHIFT), measure (SHIFT) |
    Phases of linear shifting completed, summed over nodes.
phase_s | s | length of a phase | analyse (PHASES), simulate (SHIFT), measure (SHIFT) |
    Mean length of a phase.
dummy_share | 1 | slots of the schedule without a builder unit | analyse (PHASES), simulate (SHIFT)
    |
    Share of the schedule's slots without a builder unit, mostly dummies, 0 to 1.
barrier_share | 1 | time in barriers | analyse (PHASES), simulate (SHIFT), measure (SHIFT) |
    Share of the nodes' time spent in barriers, from entering to release, 0 to 1.
barrier_rate_hz | Hz | barrier rate | analyse (PHASES), simulate (SHIFT) |
    Barriers that a node completes per second.
barrier_s.waiting | s | barrier, waiting for the slowest | analyse (PHASES), simulate (SHIFT) |
    Mean time of a node in a barrier until the slowest node of its group has entered.
barrier_s.releasing | s | barrier, release | analyse (PHASES), simulate (SHIFT) |
    Mean time of a node in a barrier after the slowest node of its group has entered, which is the
    cost of the barrier itself.
barrier_s.whole | s | length of a barrier | measure (SHIFT) |
    Mean time of a node in a barrier, from entering to release.
barrier_s.p50 | s | length of a barrier, median | measure (SHIFT) |
    Time of a node in a barrier: median, within 3 %.
barrier_s.p99 | s | length of a barrier, 99 % | measure (SHIFT) |
    Time of a node in a barrier: 99th percentile, within 3 %.
barrier_s.max | s | length of a barrier, maximum | measure (SHIFT) |
    Time of a node in a barrier: maximum, within 3 %.
barrier_s.least | s | length of a barrier, last unit | measure (SHIFT) |
    Mean time in a barrier of the unit that enters last; the difference between `most` and `least`
    is the skew of the nodes.
barrier_s.most | s | length of a barrier, first unit | measure (SHIFT) |
    Mean time in a barrier of the unit that enters first.
out_of_step_share | 1 | barriers passed without waiting | simulate (SHIFT) |
    Share of the barriers at which a node did not wait, as it had left step, 0 to 1; with
    `building.synchronise = "adaptive"`.
ring_share.in_step | 1 | share of the full rate on a ring, in step | analyse (PHASES) |
    Nodes on a ring, which have no network and no messages but the data: share of the rate at which
    every builder unit receives all the time, 0 to 1, behind a barrier after each phase that costs
    nothing. Absent, as all of these, unless `building.jitter` is random.
ring_share.out_of_step | 1 | share of the full rate on a ring, out of step | analyse (PHASES) |
    The same without a barrier, once it has settled; several that write to one builder unit have
    equal shares.
ring_share.out_of_step_at_end | 1 | share of the full rate on a ring, out of step at the end |
    analyse (PHASES) |
    The same in the last fifth of `run.duration`, from all in step. Absent for runs of more than
    some million transfers.
ring_share.builder_paced | 1 | share of the full rate on a ring, builder-paced | analyse (PHASES) |
    The same without a barrier, where a builder unit lets one node write at a time, in the order of
    their arrival.
idle_share | 1 | time without a partner (dummy) | analyse (PHASES), simulate (SHIFT), measure
    (SHIFT) |
    Share of the nodes' time without a partner to send to (the turn of a dummy), 0 to 1; barriers
    not included. `analyse` gives it for time windows.
go_wait_share | 1 | time until the builder lets write | simulate (SHIFT), measure (SHIFT) |
    Share of the readout units' time between asking their builder unit and its answer, 0 to 1; where
    builder units set the pace.
write_requests | requests | requests to write | simulate (SHIFT), measure (SHIFT) |
    Requests of readout units to builder units that set the pace, after the warm-up.
ahead_share | 1 | requests answered ahead of time | simulate (SHIFT), measure (SHIFT) |
    Share of these that were answered before the last writer was through, so that the next one
    follows it without a gap.
waiting_share.source | 1 | waiting for the source | measure |
    Share of the readout units' time in which they wait during their turn to send, 0 to 1: for data
    of their source, or for the answer of a builder while their source has none.
waiting_share.builder | 1 | waiting for a builder | measure |
    Share of the readout units' time in which they wait during their turn to send, 0 to 1: for the
    answer of a builder.
waiting_share.network | 1 | waiting for writes in flight | measure |
    Share of the readout units' time in which they wait during their turn to send, 0 to 1: for
    writes in flight on the network.
processor_share | 1 | CPU time for messages | analyse (ON_PATHS), simulate (BUILDERS, FLOWS_ALONE) |
    Share of the nodes' time in which their processors send and receive messages, 0 to 1.
unit_cores | cores | cores busy per unit | measure |
    Cores kept busy by a unit's process, its sources and sinks included; mean over units.
control_messages | messages | control messages | simulate (BUILDERS), measure |
    Control messages (without fragments), after the warm-up.
source_buffer_full | MFPs | MFPs that found the source's buffer full | simulate (SHIFT), measure |
    Multi-fragment packets (MFPs) that waited because the source's buffer was full.
trigger_stopped_share.* | 1 | time with the trigger stopped | simulate (SHIFT), measure (SHIFT) |
    Share of the time in which a full readout card stopped the trigger, so that events were lost, by
    what it waited for: the `acknowledge` of its data, or free host `memory`. `measure`: mean over
    the units; a unit whose memory is full stops its own trigger, and the others wait for its data.
writes_overran | writes | writes beyond their time window | simulate (SHIFT) |
    Writes still in flight at the end of their time window.
"""

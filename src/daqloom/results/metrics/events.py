"""Metrics of the events built: rates, counts, latency."""

EVENTS = """
event_rate_hz | Hz | event rate | analyse (ON_PATHS), simulate (BUILT), measure |
    Events delivered per second after the warm-up: `events_built` and `events_incomplete` divided by
    the time counted. `analyse` gives the long-term rate.
written_event_rate_hz | Hz | event rate, fragments written | analyse (ON_PATHS), simulate (BUILDERS)
    |
    Fragments written per second divided by the fragments of an event. Linear shifting completes all
    events of a round at its end, so that `event_rate_hz` of a short run can be wrong by the events
    of one round; this rate needs only a few phases and converges to the same value.
event_rate_bound_hz | Hz | upper bound of the event rate | analyse |
    Upper bound of the event rate: the rate at which source links, uplinks, access links or hosts
    saturate, with buffers of any depth. Over InfiniBand, that at which the first part is always
    busy, with barriers of any cost.
throughput_bps | bit/s | throughput | analyse (ON_PATHS), simulate, measure |
    Payload of events delivered per second after the warm-up, without headers. Of flows, payload of
    messages received.
written_throughput_bps | bit/s | throughput, fragments written | analyse (ON_PATHS), simulate
    (BUILDERS) |
    Payload of fragments written per second, summed over all nodes, copies within a node included;
    it relates to `throughput_bps` as `written_event_rate_hz` does to `event_rate_hz`.
max_flow_bps | bit/s | throughput that cables allow | analyse (BROKEN) |
    Payload per second that the cables of hosts and those between switches can carry of an exchange
    of all with all, with any routes and in any order (a concurrent maximum flow), in the same terms
    as `written_throughput_bps`. Given where `faults.cables` are broken, or `network.routing` is
    `mended`.
node_throughput_bps | bit/s | throughput of a node | analyse (ON_PATHS), simulate (BUILDERS),
    measure |
    Payload that a node with a readout unit sends per second, copies to itself included; mean over
    nodes.
events_built | events | events built | simulate (BUILT), measure |
    Complete events built after the warm-up: with the fragments of all readout units of the run.
events_in_flight | events | events in flight at the end | simulate (REQUESTED) |
    Events in flight at the end of the run: assigned to a builder and not yet built. A measured run
    ends when none is left.
events_waiting | events | events not assigned at the end | simulate (PULL), measure (PULL) |
    Events not yet assigned at the end of the run, because all builders were full.
events_incomplete | events | events incomplete | simulate (REGROUPED), measure |
    Events delivered with fragments missing (masked) because a unit was lost: those in flight, and
    all events until the readout unit is back or a spare takes its place.
events_discarded | events | events discarded | simulate (SHIFT), measure (BUILDERS) |
    Events discarded because a builder's output buffer was full.
events_accepted | events | events accepted | simulate (STORED), measure (STORED) |
    Events accepted for storage after their processing, after the warm-up.
events_stored | events | events stored | simulate (STORED), measure (STORED) |
    Events that arrived at a storage unit after the warm-up; measured: that it acknowledged. An
    event that arrived at two storage units counts once.
events_unstored | events | events given up by builder units | simulate (STORED), measure (STORED) |
    Accepted events that no storage unit acknowledged within storage.timeout, after the warm-up.
events_storing | events | events on their way to storage at the end | simulate (STORED),
    measure (STORED) |
    Accepted events that builder units hold at the end of the run: no storage unit has acknowledged
    them.
stored_throughput_bps | bit/s | throughput of storage | analyse (STORED_INCAST),
    simulate (STORED), measure (STORED) |
    Payload that arrives at all storage units per second, each event counted once.
storage_latency_s.min | s | storage latency, minimum | simulate (STORED) |
    Time from an event being built until a storage unit has it, processing included: minimum over
    the events stored.
storage_latency_s.mean | s | storage latency, mean | simulate (STORED) |
    Storage latency: mean.
storage_latency_s.p50 | s | storage latency, median | simulate (STORED) |
    Storage latency: median.
storage_latency_s.p99 | s | storage latency, 99 % | simulate (STORED) |
    Storage latency: 99th percentile.
storage_latency_s.max | s | storage latency, maximum | simulate (STORED) |
    Storage latency: maximum.
collection_latency_s.min | s | event latency, minimum | analyse (ALONE), simulate (REQUESTED) |
    Event-building latency, from the assignment of an event until its builder has the last fragment:
    minimum. `analyse` gives that of an event alone in the network.
collection_latency_s.mean | s | event latency, mean | simulate (REQUESTED), measure |
    Event-building latency: mean over the events built.
collection_latency_s.p50 | s | event latency, median | simulate (REQUESTED), measure |
    Event-building latency: median.
collection_latency_s.p99 | s | event latency, 99 % | simulate (REQUESTED), measure |
    Event-building latency: 99th percentile.
collection_latency_s.max | s | event latency, maximum | simulate (REQUESTED), measure |
    Event-building latency: maximum.
"""

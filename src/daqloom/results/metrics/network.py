"""Metrics of the network: buffers, losses, retransmission, links, credits, writes, flows."""

NETWORK = """
buffer_peak_bytes.tor | B | peak occupancy of the top-of-rack switch | analyse (INCAST), simulate
    (RACKS), measure (LAB_RACKS, DEVICE) |
    Peak buffer occupancy of the top-of-rack switch, in bytes of frames (with Ethernet header and
    FCS, without preamble and gap). `analyse` gives the exact peak of the superposed triangles: what
    the events need, also where the switch holds less, which is a warning. Of a device under test it
    is the sum of its ports' peaks, as it counts them; absent where it counts none.
buffer_peak_bytes.core | B | peak occupancy of a core switch | simulate (ETHERNET),
    measure (LAB, DEVICE) |
    Peak buffer occupancy, summed over outputs, of the core switch that had most.
buffer_peak_bytes.leaf | B | peak occupancy of a leaf switch | simulate (TREES),
    measure (LAB_TREES, DEVICE) |
    Peak buffer occupancy, summed over outputs, of the leaf switch that had most.
buffer_peak_bytes.spine | B | peak occupancy of a spine switch | simulate (TREES),
    measure (LAB_TREES, DEVICE) |
    Peak buffer occupancy, summed over outputs, of the spine switch that had most.
buffer_needed_bytes.tor | B | buffer needed by the top-of-rack switch | simulate (RACKS) |
    The smallest buffer of a shared-memory switch with which this run would have dropped no packet:
    cells, metadata, dedicated buffers and dynamic threshold are accounted for. Absent where packets
    were dropped.
buffer_needed_bytes.core | B | buffer needed by a core switch | simulate (ETHERNET) |
    The same of the core switch that needed most.
buffer_needed_bytes.leaf | B | buffer needed by a leaf switch | simulate (TREES) |
    The same of the leaf switch that needed most.
buffer_needed_bytes.spine | B | buffer needed by a spine switch | simulate (TREES) |
    The same of the spine switch that needed most.
incast_margin_bytes | B | incast margin | analyse (INCAST) |
    Buffer available to one builder's port minus the buffer that the incast rule requires; below 0,
    BDP + buffer ≥ Σ windows is violated. Absent if the buffer is unlimited.
packets_dropped | packets | packets dropped | simulate (ETHERNET), measure (LAB, DEVICE) |
    Packets dropped at full buffers, after the warm-up.
drops_by_port.* | packets | packets dropped | simulate (RACKS), measure (LAB, DEVICE) |
    Packets dropped, per output port that dropped any.
drop_fraction | 1 | share of packets dropped | simulate (ETHERNET), measure (LAB, DEVICE) |
    Share of packets dropped at switch outputs, 0 to 1: dropped / (dropped + delivered by the links
    that leave switches). A packet that crosses two switches counts at each. Absent without packets.
class_drops.* | packets | packets dropped of the class | simulate (CLASSES) |
    Packets of this class, 0 to 7, dropped after the warm-up in front of links whose ports have
    classes.
class_bytes.* | B | bytes on wires of the class | simulate (CLASSES) |
    Bytes of wire that frames of this class, 0 to 7, took after the warm-up, preambles and gaps
    included, summed over links whose ports have classes.
message_latency_s.* | s | latency of messages | simulate (LEVELS) |
    Latency of messages of a service level, which on Ethernet is their class, that arrived after the
    warm-up, from the post until all of one is at its host: `level_N.min`, `level_N.mean`,
    `level_N.p50`, `level_N.p99`, `level_N.max`.
packets_marked | packets | packets marked (ECN) | simulate (ETHERNET) |
    Packets marked with congestion experienced (ECN CE) by a switch, after the warm-up.
pause_frames | frames | pause frames | simulate (ETHERNET) |
    Pause frames (IEEE 802.3) that software switches sent after the warm-up, those that end a pause
    included. Absent if none has `pause_at`.
packets_discarded | packets | packets discarded (PortXmitDiscards) | simulate (INFINIBAND) |
    PortXmitDiscards, summed over outputs, whole run: packets discarded after the head-of-queue
    lifetime in a switch. Absent unless a lifetime or retries are set.
retransmission_timeouts | timeouts | retransmission timeouts | simulate (TCP, RDMA), measure |
    Retransmission timeouts: of TCP (RTO expiries) after the warm-up; of RDMA, whole run. Measured
    over `tcp`, by the kernel (Linux 6.7 or later); else absent.
timeouts_by_cause.* | timeouts | retransmission timeouts | simulate (TCP) |
    Retransmission timeouts, by what was lost: `whole_window` (no segment in flight was
    acknowledged), `tail` (the last segments), `retransmission` (a retransmitted segment).
retransmissions.* | segments | retransmissions | simulate (TCP, RDMA), measure |
    Segments retransmitted, by trigger: `fast` (SACK or duplicate ACKs), `probe` (tail-loss probe),
    `timeout` (retransmission timer). Of RDMA, whole run: packets retransmitted after a NAK of the
    receiver (`nak`) or the timer. Measured over `tcp`: `all` of the kernel's.
records_damaged | records | damaged records | measure |
    Records received with a wrong checksum or number, each of which ended its connection. Measured
    over `tcp`; else absent.
writes_damaged | writes | damaged writes | measure |
    Writes received with a wrong checksum, which were sent again. Measured over `tcp`, with
    `measure.checksums`; else absent or 0.
writes_failed | writes | RDMA writes failed | simulate (RDMA) |
    RDMA writes failed over the whole run: their connections exceeded the retry count.
link_utilisation.* | 1 | link utilisation | analyse (INCAST), simulate (ETHERNET, INFINIBAND),
    measure (LAB) |
    Link utilisation, 0 to 1: share of time taken by frames, preambles and gaps, of one link
    (`access.3.down`) or the mean of all of a kind (`access.down`). `analyse` gives the utilisation
    at the offered rate, at most 1.
packet_hops | packets | packet hops | simulate (ETHERNET, INFINIBAND) |
    Frames delivered, counted on each link, after the warm-up; on InfiniBand, whole run.
ack_hops | packets | packet hops without payload | simulate (ETHERNET) |
    Frames delivered without payload, such as ACKs.
xmit_wait_s.credits | s | waiting for credits (PortXmitWait), all outputs | simulate (INFINIBAND) |
    PortXmitWait, summed over outputs, whole run: time in which an output was idle although packets
    were queued for it, because it had no credits.
xmit_wait_s.crossbar | s | waiting for the crossbar (PortXmitWait), all outputs | simulate
    (INFINIBAND) |
    PortXmitWait, summed over outputs, whole run: time in which an output was idle although packets
    were queued for it, because their inputs were sending to other outputs, or no matching of the
    crossbar chose them.
write_latency_s.min | s | write latency, minimum | simulate (BUILDERS, FLOWS_ALONE) |
    Latency of RDMA writes of fragments to other nodes, from the post until the sender sees the
    completion, of those completed after the warm-up: minimum.
write_latency_s.mean | s | write latency, mean | simulate (BUILDERS, FLOWS_ALONE) |
    Latency of RDMA writes: mean.
write_latency_s.p50 | s | write latency, median | simulate (BUILDERS, FLOWS_ALONE) |
    Latency of RDMA writes: median.
write_latency_s.p99 | s | write latency, 99 % | simulate (BUILDERS, FLOWS_ALONE) |
    Latency of RDMA writes: 99th percentile.
write_latency_s.max | s | write latency, maximum | simulate (BUILDERS, FLOWS_ALONE) |
    Latency of RDMA writes: maximum.
flow_throughput_bps.* | bit/s | throughput of the flow | simulate (FLOWS), measure (FLOWS) |
    Goodput of the flow with this name: payload of messages received per second after the warm-up,
    summed over its sources.
flow_messages.* | messages | messages of the flow | simulate (FLOWS), measure (FLOWS) |
    Messages of the flow received after the warm-up, summed over its sources.
flow_messages_lost.* | messages | messages of the flow lost | simulate (DATAGRAMS),
    measure (DATAGRAMS) |
    Messages of a flow over UDP that lost a datagram and whose last one is dropped, or has arrived,
    after the warm-up.
flow_latency_s.* | s | message latency of the flow | simulate (FLOWS) |
    Latency of messages received after the warm-up, from the post until the receiver has them:
    `NAME.min`, `NAME.mean`, `NAME.p50`, `NAME.p99`, `NAME.max` of the flow NAME.
flow_wait_s.* | s | PortXmitWait of the flow's sources | simulate (WAITING_FLOWS) |
    PortXmitWait of the ports of a flow's sources, whole run: time in which packets were ready and
    none was sent.
inferred_buffer_bytes.least | B | input buffer by PortXmitWait, at least | simulate (WAITING_FLOWS)
    |
    Lower bound of the input buffer of a switch port for one virtual lane, derived from PortXmitWait
    where a burst blocks a stream.
inferred_buffer_bytes.most | B | input buffer by PortXmitWait, at most | simulate (WAITING_FLOWS) |
    Upper bound of the input buffer of a switch port for one virtual lane, derived from
    PortXmitWait. Absent unless the stream's port waited at all.
"""

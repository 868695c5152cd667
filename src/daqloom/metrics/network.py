"""Metrics of the network: buffers, losses, retransmission, links, credits, writes, flows."""

from __future__ import annotations

from daqloom.metrics.metric import Metric, Parts

ETHERNET, INFINIBAND, RACKS = Parts.ETHERNET, Parts.INFINIBAND, Parts.RACKS
TCP, RDMA, INCAST = Parts.TCP, Parts.RDMA, Parts.INCAST
BUILDERS, FLOWS = Parts.BUILDERS, Parts.FLOWS

LEVELS = ("core", ETHERNET), ("leaf", Parts.TREES), ("spine", Parts.TREES)
"""Levels of switches besides the top-of-rack switch, and where they are."""

NETWORK: tuple[Metric, ...] = (
    Metric(
        "buffer_peak_bytes.tor",
        "B",
        "peak occupancy of the top-of-rack switch",
        "Peak buffer occupancy of the top-of-rack switch, in bytes of frames (with Ethernet header "
        "and FCS, without preamble and gap). `analyse` gives the exact peak of the superposed "
        "triangles.",
        analyse=INCAST,
        simulate=RACKS,
    ),
    *(
        Metric(
            f"buffer_peak_bytes.{level}",
            "B",
            f"peak occupancy of a {level} switch",
            f"Peak buffer occupancy, summed over outputs, of the {level} switch that had most.",
            simulate=parts,
        )
        for level, parts in LEVELS
    ),
    Metric(
        "buffer_needed_bytes.tor",
        "B",
        "buffer needed by the top-of-rack switch",
        "The smallest buffer of a shared-memory switch with which this run would have dropped "
        "no packet: cells, metadata, dedicated buffers and dynamic threshold are accounted for. "
        "Absent where packets were dropped.",
        simulate=RACKS,
    ),
    *(
        Metric(
            f"buffer_needed_bytes.{level}",
            "B",
            f"buffer needed by a {level} switch",
            f"The same of the {level} switch that needed most.",
            simulate=parts,
        )
        for level, parts in LEVELS
    ),
    Metric(
        "incast_margin_bytes",
        "B",
        "incast margin",
        "Buffer available to one builder's port minus the buffer that the incast rule requires; "
        "below 0, BDP + buffer ≥ Σ windows is violated. Absent if the buffer is unlimited.",
        analyse=INCAST,
    ),
    Metric(
        "packets_dropped",
        "packets",
        "packets dropped",
        "Packets dropped at full buffers, after the warm-up.",
        simulate=ETHERNET,
    ),
    Metric(
        "drops_by_port.*",
        "packets",
        "packets dropped",
        "Packets dropped, per output port that dropped any.",
        simulate=RACKS,
    ),
    Metric(
        "drop_fraction",
        "1",
        "share of packets dropped",
        "Share of packets dropped at switch outputs, 0 to 1: dropped / (dropped + delivered by the "
        "links that leave switches). A packet that crosses two switches counts at each. Absent if "
        "there were none.",
        simulate=ETHERNET,
    ),
    Metric(
        "packets_marked",
        "packets",
        "packets marked (ECN)",
        "Packets marked with congestion experienced (ECN CE) by a switch, after the warm-up.",
        simulate=ETHERNET,
    ),
    Metric(
        "packets_discarded",
        "packets",
        "packets discarded (PortXmitDiscards)",
        "PortXmitDiscards, summed over outputs, whole run: packets discarded after the "
        "head-of-queue lifetime in a switch. Absent unless a lifetime or retries are set.",
        simulate=INFINIBAND,
    ),
    Metric(
        "retransmission_timeouts",
        "timeouts",
        "retransmission timeouts",
        "Retransmission timeouts: of TCP (RTO expiries) after the warm-up; of RDMA, whole run.",
        simulate=TCP | RDMA,
    ),
    Metric(
        "timeouts_by_cause.*",
        "timeouts",
        "retransmission timeouts",
        "Retransmission timeouts, by what was lost: `whole_window` (no segment in flight was "
        "acknowledged), `tail` (the last segments), `retransmission` (a retransmitted segment).",
        simulate=TCP,
    ),
    Metric(
        "retransmissions.*",
        "segments",
        "retransmissions",
        "Segments retransmitted, by trigger: `fast` (SACK or duplicate ACKs), `probe` (tail-loss "
        "probe), `timeout` (retransmission timer). Of RDMA, whole run: packets retransmitted "
        "after a NAK of the receiver (`nak`) or the timer.",
        simulate=TCP | RDMA,
    ),
    Metric(
        "writes_failed",
        "writes",
        "RDMA writes failed",
        "RDMA writes failed over the whole run: their connections exceeded the retry count.",
        simulate=RDMA,
    ),
    Metric(
        "link_utilisation.*",
        "1",
        "link utilisation",
        "Link utilisation, 0 to 1: share of time taken by frames, preambles and gaps, of one link "
        "(`access.3.down`) or the mean of all of a kind (`access.down`). `analyse` gives the "
        "utilisation at the offered rate, at most 1.",
        analyse=INCAST,
        simulate=ETHERNET | INFINIBAND,
    ),
    Metric(
        "packet_hops",
        "packets",
        "packet hops",
        "Frames delivered, counted on each link, after the warm-up; on InfiniBand, whole run.",
        simulate=ETHERNET | INFINIBAND,
    ),
    Metric(
        "ack_hops",
        "packets",
        "packet hops without payload",
        "Frames delivered without payload, such as ACKs.",
        simulate=ETHERNET,
    ),
    Metric(
        "xmit_wait_s.credits",
        "s",
        "waiting for credits (PortXmitWait), all outputs",
        "PortXmitWait, summed over outputs, whole run: time in which an output was idle although "
        "packets were queued for it, because it had no credits.",
        simulate=INFINIBAND,
    ),
    Metric(
        "xmit_wait_s.crossbar",
        "s",
        "waiting for the crossbar (PortXmitWait), all outputs",
        "PortXmitWait, summed over outputs, whole run: time in which an output was idle although "
        "packets were queued for it, because their inputs were sending to other outputs.",
        simulate=INFINIBAND,
    ),
    Metric(
        "write_latency_s.min",
        "s",
        "write latency, minimum",
        "Latency of RDMA writes of fragments to other nodes, from the post until the "
        "sender sees the completion, of those completed after the warm-up: minimum.",
        simulate=BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "write_latency_s.mean",
        "s",
        "write latency, mean",
        "Latency of RDMA writes: mean.",
        simulate=BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "write_latency_s.p50",
        "s",
        "write latency, median",
        "Latency of RDMA writes: median.",
        simulate=BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "write_latency_s.p99",
        "s",
        "write latency, 99 %",
        "Latency of RDMA writes: 99th percentile.",
        simulate=BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "write_latency_s.max",
        "s",
        "write latency, maximum",
        "Latency of RDMA writes: maximum.",
        simulate=BUILDERS | Parts.FLOWS_ALONE,
    ),
    Metric(
        "flow_throughput_bps.*",
        "bit/s",
        "throughput of the flow",
        "Goodput of the flow with this name: payload of messages received per second after the "
        "warm-up, summed over its sources.",
        simulate=FLOWS,
    ),
    Metric(
        "flow_messages.*",
        "messages",
        "messages of the flow",
        "Messages of the flow received after the warm-up, summed over its sources.",
        simulate=FLOWS,
    ),
    Metric(
        "flow_latency_s.*",
        "s",
        "message latency of the flow",
        "Latency of messages received after the warm-up, from the post until the receiver has "
        "them: `NAME.min`, `NAME.mean`, `NAME.p50`, `NAME.p99`, `NAME.max` of the flow NAME.",
        simulate=FLOWS,
    ),
    Metric(
        "flow_wait_s.*",
        "s",
        "PortXmitWait of the flow's sources",
        "PortXmitWait of the ports of a flow's sources, whole run: time in which packets were "
        "ready and none was sent.",
        simulate=Parts.WAITING_FLOWS,
    ),
    Metric(
        "inferred_buffer_bytes.least",
        "B",
        "input buffer by PortXmitWait, at least",
        "Lower bound of the input buffer of a switch port for one virtual lane, derived from "
        "PortXmitWait where a burst blocks a stream.",
        simulate=Parts.WAITING_FLOWS,
    ),
    Metric(
        "inferred_buffer_bytes.most",
        "B",
        "input buffer by PortXmitWait, at most",
        "Upper bound of the input buffer of a switch port for one virtual lane, derived from "
        "PortXmitWait. Absent unless the stream's port waited at all.",
        simulate=Parts.WAITING_FLOWS,
    ),
)

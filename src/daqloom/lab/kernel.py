"""Commands for `ip`, `bridge` and `tc` that create a laboratory's network.

A switch port is the end of a veth cable: a token bucket acts as the wire, and a FIFO as the port's
buffer. A bucket of b bytes releases b bytes that a real wire would still be sending. The FIFO is
shorter by b, so that bucket and FIFO together hold the port's buffer including the frame on the
wire: see `Queue.buffer_bytes`. For a shaper of the scenario, the bucket is that of the shaper, and
the FIFO is the whole buffer."""

import math
from collections.abc import Container, Iterable, Iterator, Sequence

from daqloom.lab.network import (
    CHECK_SEQUENCE_BYTES,
    Forwarding,
    Host,
    LabNetwork,
    Queue,
    full_frame_bytes,
)
from daqloom.machine.namespace import NETWORK
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.links import WIRE_OVERHEAD_BYTES

BURST_S = 50e-6
"""Content of a fast link's bucket, as transmission time: the usual lateness of timers."""
UNSEEN_BYTES = CHECK_SEQUENCE_BYTES + WIRE_OVERHEAD_BYTES
"""Bytes of a frame on the wire that the kernel's counters leave out."""
UNLIMITED_BYTES = 1_000_000_000
BUCKET, FIFO = 1, 0x10
"""Handles of a port's two queueing disciplines."""


def burst_frames(queue: Queue, mtu_bytes: int) -> float:
    """Return the size of a port's token bucket in full frames."""
    if queue.bucket_bytes:
        return 8 * queue.bucket_bytes / _wire_bits(mtu_bytes)
    return max(queue.bucket_frames, math.ceil(BURST_S * queue.rate_bps / _wire_bits(mtu_bytes)))


def ahead_frames(queue: Queue, mtu_bytes: int) -> float:
    """Return the part of a port's buffer that its bucket has already released, in full frames."""
    return 0.0 if queue.bucket_bytes else burst_frames(queue, mtu_bytes)


def bucket_s(queue: Queue, mtu_bytes: int) -> float:
    """Return the largest lateness of timers with which a port still keeps its rate (s)."""
    return burst_frames(queue, mtu_bytes) * _wire_bits(mtu_bytes) / queue.rate_bps


def _wire_bits(mtu_bytes: int) -> int:
    return 8 * (full_frame_bytes(mtu_bytes) + WIRE_OVERHEAD_BYTES)


def cables(network: LabNetwork, holders: Sequence[int | str]) -> Iterator[str]:
    """Yield `ip` commands for switches and cables, to run in the switches' namespace. `holders`:
    processes that hold the hosts' namespaces."""
    yield "link set lo up"  # where software switches listen
    bridges = network.bridges
    for number in bridges:
        yield f"link add name s{number} type bridge stp_state 0 mcast_snooping 0"
        yield f"link set s{number} mtu {network.mtu_bytes} up"
    for cable in network.cables:
        (a, b), at = (cable.a, cable.b), cable.hosts
        if at[0] >= 0:
            a, b, at = b, a, (at[1], at[0])
        far = f"name {b.device}"
        if at[1] >= 0:
            hardware = network.hosts[at[1]].hardware_address
            far += f" netns {holders[at[1]]} address {hardware}"
        yield f"link add name {a.device} mtu {network.mtu_bytes} type veth peer {far}"
        for queue in (a, b):
            if queue.switch >= 0:
                yield _port(queue, is_bridged=queue.switch in bridges)


def _port(queue: Queue, *, is_bridged: bool) -> str:
    # Frames hold one segment each, so that the kernel sends no bursts.
    master = f" master s{queue.switch}" if is_bridged else ""
    return f"link set {queue.device} gso_max_segs 1{master} up"


def forwarding(network: LabNetwork) -> Iterator[str]:
    """Yield `bridge` commands for forwarding tables without learning and flooding. A port may send
    back what it receives, as while tables of two switches change one after the other."""
    for switch in network.bridges:
        for queue in network.queues_of(switch):
            device = f"link set dev {queue.device}"
            yield f"{device} learning off flood off mcast_flood off bcast_flood off hairpin on"
        for host, device in zip(network.hosts, network.towards[switch], strict=True):
            if device:
                yield f"fdb add {host.hardware_address} dev {device} master static"


def rerouting(network: LabNetwork, before: Forwarding, now: Forwarding) -> Iterator[str]:
    """Yield `bridge` commands that change forwarding tables; hosts without a path keep theirs."""
    for switch in network.bridges:
        for host, old, new in zip(network.hosts, before[switch], now[switch], strict=True):
            if new and new != old:
                yield f"fdb replace {host.hardware_address} dev {new} master static"


def own(network: LabNetwork, host: Host) -> Iterator[str]:
    """Yield `ip` commands for one host, to run in its namespace."""
    yield "link set lo up"
    yield f"address add {host.address}/16 dev eth0 noprefixroute"
    yield f"link set eth0 mtu {network.mtu_bytes} gso_max_segs 1 up"
    yield f"route add {NETWORK} dev eth0 {network.route}"
    for other in network.hosts:
        if other is not host:
            address = f"lladdr {other.hardware_address}"
            yield f"neigh add {other.address} {address} dev eth0 nud permanent"


def queues(queues: Iterable[Queue], mtu_bytes: int) -> Iterator[str]:
    """Yield `tc` commands for the rates and buffers of ports."""
    for queue in queues:
        device = f"qdisc add dev {queue.device}"
        frame = full_frame_bytes(mtu_bytes) + WIRE_OVERHEAD_BYTES
        burst = round(burst_frames(queue, mtu_bytes) * frame)
        if burst < frame:
            raise ScenarioError(
                f"measure.lab: the shaper of {queue.link.name} has a bucket of {burst} B; expected "
                f"a full frame at least, which is {frame} B on the wire"
            )
        yield (
            f"{device} root handle {BUCKET:x}: tbf rate {queue.rate_bps}bit burst {burst} "
            f"limit {UNLIMITED_BYTES} overhead {UNSEEN_BYTES} linklayer ethernet"
        )
        yield f"{device} parent {BUCKET:x}:1 handle {FIFO:x}: {fifo(queue, mtu_bytes)}"


def cut(queues: Iterable[Queue], links: Container[str], mtu_bytes: int) -> Iterator[str]:
    """Yield `tc` commands after which queues drop all frames, and count them, if the link that
    begins at them is in `links`. Other queues hold as many frames as always."""
    for queue in queues:
        kind, *limit = fifo(queue, mtu_bytes).split()
        limit = ["limit", "0"] if queue.link.name in links else limit
        parent = f"qdisc change dev {queue.device} parent {BUCKET:x}:1 handle {FIFO:x}:"
        yield " ".join([parent, kind, *limit])


def fifo(queue: Queue, mtu_bytes: int) -> str:
    """Return the arguments of a port's FIFO for `tc`. Raises ScenarioError if the port's buffer is
    not larger than the part of it in the token bucket."""
    frame = full_frame_bytes(mtu_bytes)
    burst = ahead_frames(queue, mtu_bytes)
    limits = [queue.buffer_bytes // frame] if queue.buffer_bytes else []
    limits += [queue.packets] if queue.packets else []
    if not limits:
        return f"bfifo limit {UNLIMITED_BYTES}"
    if (frames := min(limits)) <= burst:
        raise ScenarioError(
            f"measure.lab: the port of {queue.link.name} has a buffer of {frames} full frames, "
            f"and its rate is kept by {burst:g}; give it a larger buffer"
        )
    if frames == queue.packets:
        return f"pfifo limit {frames - math.floor(burst)}"
    room = queue.buffer_bytes - round(burst * frame)
    return f"bfifo limit {room - CHECK_SEQUENCE_BYTES * (room // frame)}"

"""[measure]: how a scenario is measured, with real processes."""

import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from daqloom.scenario.inputs import FileName
from daqloom.scenario.quantities import (
    TIME,
    BitRateOrNone,
    Bytes,
    PositiveBytes,
    PositiveSeconds,
    Seconds,
)
from daqloom.scenario.schema.part import Assumed, Part, When, items
from daqloom.scenario.validation import pattern, text

MOST_HOSTS = 8192
MOST_CORES = 4096
HEARTBEATS_PER_TIMEOUT = 3
WHEREABOUTS = frozenset({"hosts", "bind", "network", "port", "certificates"})
WHEREABOUTS |= {"sink_files", "prometheus_port"}
"""Keys of places, which do not change what is measured."""


TransportName = Annotated[
    str,
    pattern(
        r"shm|tcp|libfabric:[A-Za-z0-9_;-]{1,40}",
        'is not a transport; expected "shm", "tcp", or "libfabric:" and a provider that `fi_info` '
        'lists, such as "libfabric:tcp"',
    ),
]
Congestion = Annotated[
    str,
    pattern(
        r"[a-z0-9_-]{0,15}",
        "is not a congestion control of TCP; expected a name that "
        '`sysctl net.ipv4.tcp_allowed_congestion_control` lists, such as "cubic"',
    ),
]
Network = Annotated[
    str,
    text(
        lambda value: value and ipaddress.ip_network(value),
        'is not a network; expected one such as "10.1.0.0/16"',
    ),
]
Address = Annotated[
    str,
    text(
        ipaddress.ip_address,
        'is not an IP address; expected one of this machine, such as "127.0.0.1"',
    ),
]
Cores = Annotated[
    str,
    text(
        lambda value: value if value in ("", "auto") or cores(value) else None,
        'is not a list of cores; expected "auto", or numbers and ranges such as "0-3,8"',
    ),
]


def cores(text: str) -> list[int]:
    """Return the processor cores of "0-3,8", in that order; none for another text."""
    found: list[int] = []
    for part in text[:1000].split(","):
        match = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", part)
        if not match:
            return []
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < MOST_CORES:
            return []
        found += range(first, last + 1)
    return found if len(set(found)) == len(found) else []


Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$", max_length=253)]
"""Name of a host, which ssh cannot take for an option: it begins with a letter, digit or
underscore."""


class Measure(Part):
    """[measure]: keys of a measurement alone."""

    transport: TransportName = "shm"
    """"shm": units of one machine write into each other's memory; "tcp": over the kernel's sockets,
    one connection for each pair of units, with the congestion control and, if it is static, the
    window of `[transport]`; "libfabric:PROVIDER" ("libfabric:tcp", "libfabric:verbs;ofi_rxm"): over
    a network."""
    network: Network = ""
    """Over a network: the one of the addresses of units for their data, such as "10.1.0.0/16"; else
    each uses the address with which it reaches the run control."""
    namespaces: bool = False
    """Over TCP, local: each unit is in a network namespace of its own with a link to one
    bridge, which `[faults.injected]` can break; needs root or user namespaces."""
    lab: Literal["none", "namespaces"] = "none"
    """Over TCP, local: the scenario's network is made on this machine, a network namespace for each
    host, veth cables with the rates of its links, queues of the kernel as the ports of its
    switches; needs root or user namespaces."""
    bucket_frames: Annotated[float, When(".lab", ("namespaces",))] = Field(
        default=2.0, ge=1.1, le=64
    )
    """Full frames in the token bucket of a laboratory's port. So many leave an idle port at once,
    of a wire one does; a timer may be late by all but one of them, and the port keeps its rate."""
    device: FileName = ""
    """Over a network: the file of a switch that is the device under test. Its buffers are set as
    `[network.switch]` says, and afterwards back, and its counters are read."""
    congestion: Congestion = ""
    """Over TCP: congestion control of the connections, such as "cubic"; else "tcp" has that of
    `[transport]`, and for libfabric that of the route or the system applies."""
    pacing: BitRateOrNone = 0
    """Over "tcp": maximum sending rate of each connection (SO_MAX_PACING_RATE); "0 b/s" means no
    limit (b/s)."""
    send_buffer: Bytes = Field(default=0, le=1 << 30)
    """Over "tcp": send buffer of a connection (SO_SNDBUF); "0 B": as the system tunes it (B)."""
    receive_buffer: Bytes = Field(default=0, le=1 << 30)
    """Over "tcp": receive buffer (SO_RCVBUF); "0 B": as the system tunes it, or as a static window
    needs it (B)."""
    dscp: int = Field(default=0, ge=0, le=63)
    """Over "tcp": differentiated services code point of packets, by which networks steer them."""
    source_port: int = Field(default=0, ge=0, le=65535)
    """Over "tcp": first source port, by which networks choose paths: units i > j are connected from
    it plus i·(i − 1)/2 + j; 0: as the system chooses."""
    checksums: Literal["auto", "always", "never"] = "auto"
    """Whether the bytes of writes have a CRC32C, by which a damaged write is found and sent again;
    "auto": over "tcp", if units may be on several machines. Over "tcp" headers and messages always
    have one; over other transports messages have one with "always", and two messages more go for
    each write."""
    waiting: Literal["adaptive", "blocking", "spinning"] = "adaptive"
    """How a data thread waits: it polls briefly and then sleeps (adaptive), sleeps at once, or
    polls for ever, which needs a core of its own."""
    launch: Literal["local", "ssh", "slurm", "by-hand"] = "local"
    """How units start: as children of the command, on `hosts` by ssh, with srun in this Slurm
    allocation, or by hand with `daqloom unit`, of which `daqloom control` prints the command."""
    hosts: tuple[Host, ...] = items(MOST_HOSTS)
    """Ssh: machines on which units are started, in turn or, with `hosts.placement` = "table", each
    on the host that `hosts.units` gives it; daqloom has to be at the same path on each."""
    bind: Address = "127.0.0.1"
    """Address of this machine where the run control listens for units and operators ("0.0.0.0":
    all); one other than loopback requires `certificates`."""
    port: int = Field(default=0, ge=0, le=65535)
    """Port on which the run control listens; 0: a free one, which it prints."""
    certificates: FileName = ""
    """Folder with certificates from `daqloom control certificates`, by which run control, units and
    operators authenticate each other with TLS."""
    cores: Cores = ""
    """Processor cores of a machine to which its units are pinned, shared equally: "0-3,8", "auto"
    for all; else the system decides. Memory is on the NUMA node of the core that first touches
    it."""
    heartbeat: PositiveSeconds = Field(default=0.2, le=60)
    """Interval of a unit's heartbeats (s)."""
    fault_timeout: PositiveSeconds = Field(default=1.0, le=600)
    """Fault timeout: how long a unit may be silent, stuck or unreachable before the others continue
    without it; at least three heartbeats (s)."""
    incomplete: Literal["deliver", "drop"] = "deliver"
    """Events without the fragments of a lost unit: delivered with a mask of the missing fragments,
    or dropped; counted either way."""
    restart: bool = True
    """Whether lost units are brought back automatically: ended processes are restarted, others
    reset; else `daqloom control reset N` brings them back."""
    join_time: Annotated[Seconds, Assumed(when=(When("faults.injected"),))] = 1.0
    """Simulated: from the start of a lost unit's process until it has joined the run (s)."""
    minimum: int = Field(default=1, ge=1, le=8192)
    """Smallest number of units with which a run continues; with fewer it is in error."""
    source: Literal["generator", "replay", "user"] = "generator"
    """Source of multi-fragment packets (MFPs): generated with checkable content, replayed from
    `source_files`, or a process of yours through shared memory."""
    source_files: FileName = ""
    """Replay: folder or file written by `daqloom data generate` or a run."""
    content: Literal["every", "once"] = "every"
    """Generator: whether it fills each packet anew, or its buffer only once, so that filling costs
    no time in the measurement."""
    sink: Literal["check", "discard", "file", "user"] = "check"
    """Sink of built events: checked byte for byte (a replay by the checksums of the recording) and
    discarded, discarded unread, written to `sink_files`, or passed to a process of yours through
    shared memory."""
    sink_files: FileName = ""
    """File: folder of the files, which can be replayed later."""
    when_unwritable: Literal["count", "stop"] = "count"
    """File: a unit that cannot write events (to a full disk, for example) counts them as not
    written and tries again while the others continue; or the run stops. Either way `daqloom
    measure` has exit code 1."""
    when_full: Literal["discard", "wait"] = "discard"
    """A builder unit with a full output buffer discards events, which are counted, or waits for
    free space, which stops the whole event builder (backpressure)."""
    stream_buffer: PositiveBytes = Field(default=64_000_000, le=1 << 40)
    """Buffer between the source of a stream and its readout unit (B)."""
    output_buffer: PositiveBytes = Field(default=256_000_000, le=1 << 40)
    """Buffer of a builder unit, in which events are built and read (B)."""
    duration: PositiveSeconds = 5.0
    """Wall-clock time of `daqloom measure`, warm-up included; run.duration is virtual time and does
    not apply (s)."""
    warmup: Seconds = 0.5
    """Wall-clock time at the start that no metric counts (s)."""
    events: int = Field(default=0, ge=0, le=1 << 53)
    """Ends `daqloom measure` after this number of events, if `duration` is not over before; 0:
    `duration` alone ends it."""
    prometheus_port: int = Field(default=0, ge=0, le=65535)
    """Unit N serves its counters for Prometheus on this port + N; 0: it does not."""

    @property
    def over_tcp(self) -> bool:
        """Whether data goes through the kernel's TCP."""
        return re.match(r"tcp$|libfabric:(tcp|sockets|net)", self.transport) is not None

    @property
    def has_lab(self) -> bool:
        """Whether the scenario's own network is made for the measurement."""
        return self.lab != "none"

    @property
    def has_network(self) -> bool:
        """Whether the scenario's network has an effect on the measurement."""
        return self.has_lab or bool(self.device)

    @property
    def is_apart(self) -> bool:
        """Whether units have network namespaces of their own."""
        return any(self._apart.values())

    @property
    def _apart(self) -> dict[str, bool]:
        return {"namespaces": self.namespaces, "lab": self.has_lab}

    @property
    def shares_memory(self) -> bool:
        """Whether units write into each other's memory, all of them on one machine."""
        return self.transport == "shm"

    @property
    def spans_machines(self) -> bool:
        """Whether units may be on several machines."""
        local = self.launch == "local" or ipaddress.ip_address(self.bind).is_loopback
        return not self.shares_memory and not local

    @property
    def has_checksums(self) -> bool:
        """Whether the bytes of writes have checksums."""
        by_default = self.transport == "tcp" and self.spans_machines
        return self.checksums == "always" or (self.checksums == "auto" and by_default)

    def bearing(self) -> dict[str, Any]:
        """Return the keys that affect a result and differ from their defaults, as JSON."""
        usual = Measure().model_dump(mode="json")
        mine = self.model_dump(mode="json", exclude=set(WHEREABOUTS))
        return {key: value for key, value in mine.items() if value != usual[key]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        least = round(HEARTBEATS_PER_TIMEOUT * self.heartbeat, 12)
        if self.fault_timeout < least:
            raise ValueError(
                f"fault_timeout = {TIME.format(self.fault_timeout)} is less than "
                f"{HEARTBEATS_PER_TIMEOUT} × heartbeat ({TIME.format(self.heartbeat)}) = "
                f"{TIME.format(least)}; a unit would be lost for one late heartbeat"
            )
        if self.warmup >= self.duration:
            raise ValueError(
                f"warmup = {TIME.format(self.warmup)} leaves no time to measure of duration = "
                f"{TIME.format(self.duration)}; shorten the one or lengthen the other"
            )
        options = ("pacing", "send_buffer", "receive_buffer", "dscp", "source_port")
        if self.transport != "tcp" and (used := [key for key in options if getattr(self, key)]):
            refusal = f'{used[0]} is an option of sockets of TCP and requires transport = "tcp"'
            raise ValueError(f'{refusal}; it is "{self.transport}"')
        apart = [key for key, is_set in self._apart.items() if is_set]
        if len(apart) > 1:
            raise ValueError(
                "namespaces and lab each make a network for the units; set one of them"
            )
        if apart and not (self.over_tcp and self.launch == "local"):
            raise ValueError(
                f'{apart[0]} requires transport = "tcp" or "libfabric:tcp" and launch = "local"; '
                f'they are "{self.transport}" and "{self.launch}"'
            )
        if apart and (self.network or self.prometheus_port):
            raise ValueError(
                f"{apart[0]} leaves no use for network and prometheus_port: the units have a "
                "network of their own, isolated from others; leave them out"
            )
        if self.device and (apart or self.shares_memory):
            raise ValueError(
                "device is a switch between machines, and "
                + (f"{apart[0]} makes a network on this one" if apart else "shm uses none")
                + '; leave it out, or measure over a network, as with transport = "tcp"'
            )
        if self.launch == "ssh" and not self.hosts:
            raise ValueError('launch = "ssh" requires hosts, such as hosts = ["node1", "node2"]')
        if not ipaddress.ip_address(self.bind).is_loopback and not self.certificates:
            raise ValueError(
                f"bind = {self.bind} is reachable from other machines and requires certificates; "
                "`daqloom control certificates DIR` makes them, certificates = DIR uses them"
            )
        for kind, needed in (("source", "replay"), ("sink", "file")):
            if getattr(self, kind) == needed and not getattr(self, f"{kind}_files"):
                raise ValueError(f'{kind} = "{needed}" requires {kind}_files, a folder')
        return self

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
    Duration,
    PositiveBytes,
    PositiveDuration,
)
from daqloom.scenario.schema.part import Guess, Part, When, items
from daqloom.scenario.validation import pattern, text

MOST_HOSTS = 8192
MOST_CORES = 4096
HEARTBEATS_PER_TIMEOUT = 3
WHEREABOUTS = frozenset({"hosts", "bind", "network", "port", "certificates"})
WHEREABOUTS |= {"sink_files", "prometheus_port", "prometheus_run_port", "influxdb"}
"""Keys on locations (hosts, addresses, folders), which do not affect the measured system."""


TransportName = Annotated[
    str,
    pattern(
        r"shm|(shm\+)?(tcp|mpi|libfabric:[A-Za-z0-9_;-]{1,40})",
        'is not a transport; expected "shm", "tcp", "mpi", "libfabric:" and a provider that '
        '`fi_info` lists, such as "libfabric:tcp", or "shm+" and one of the others',
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
Program = Annotated[
    str,
    pattern(
        r"[A-Za-z0-9_/][A-Za-z0-9_./+-]{0,199}",
        'is not a program; expected a name or path such as "mpirun.mpich"',
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
Url = Annotated[
    str,
    pattern(
        r"|https?://(\[[0-9a-fA-F:.]{1,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?(/[!-~]{0,1000})?",
        "is not a URL of http or https without a user; expected one such as "
        '"http://127.0.0.1:8086/write?db=daqloom"',
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
    """Return the processor cores in text such as "0-3,8", in that order; none if invalid."""
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
"""Name of a host. It begins with a letter, digit or underscore, so that ssh cannot mistake it for
an option."""


class Measure(Part):
    """[measure]: keys that only measurements use."""

    transport: TransportName = "shm"
    """"shm": units of one machine write into each other's memory; "tcp": kernel sockets, one
    connection for each pair of units, with the congestion control of `[transport]` and its static
    window, if any; "libfabric:PROVIDER", such as "libfabric:tcp" or "libfabric:verbs;ofi_rxm": a
    network through libfabric; "mpi": the ranks of an mpirun (launch mpirun); "shm+NAME", such as
    "shm+tcp": shared memory between units of one machine, NAME between machines."""
    network: Network = ""
    """Network that contains the addresses of units for their data, such as "10.1.0.0/16"; default:
    each unit uses the address with which it reaches the run control. Not with "shm"."""
    namespaces: bool = False
    """With TCP and launch local: whether each unit has its own network namespace with a link to a
    common bridge, which `[faults.injected]` can break; needs root or user namespaces."""
    lab: Literal["none", "namespaces"] = "none"
    """With TCP and launch local: whether the scenario's network is made on this machine: a network
    namespace for each host, veth cables with the rates of the links, and kernel queues as switch
    ports; needs root or user namespaces."""
    bucket_frames: Annotated[float, When(".lab", ("namespaces",))] = Field(
        default=2.0, ge=1.1, le=64
    )
    """Depth of the token bucket of a laboratory's port, in full frames. After a pause a port sends
    this number of frames at once, a real link only one. The port keeps its rate if timers are late
    by at most the time of these frames minus one."""
    device: FileName = ""
    """File of a switch that is the device under test, with a transport over a network. Its buffers
    are set to `[network.switch]` for the measurement and restored afterwards, and its counters are
    read."""
    congestion: Congestion = ""
    """Congestion control of TCP connections, such as "cubic"; default: that of `[transport]` for
    "tcp", and for libfabric that of the route or the system."""
    pacing: BitRateOrNone = 0
    """With "tcp": maximum sending rate of each connection (SO_MAX_PACING_RATE); "0 b/s": no limit
    (b/s)."""
    send_buffer: Bytes = Field(default=0, le=1 << 30)
    """With "tcp": send buffer of a connection (SO_SNDBUF); "0 B": tuned by the system (B)."""
    receive_buffer: Bytes = Field(default=0, le=1 << 30)
    """With "tcp": receive buffer of a connection (SO_RCVBUF); "0 B": tuned by the system, or as
    large as a static window needs (B)."""
    dscp: int = Field(default=0, ge=0, le=63)
    """With "tcp": differentiated services code point of packets, which networks use to select
    queues."""
    source_port: int = Field(default=0, ge=0, le=65535)
    """With "tcp": first source port; networks use source ports to select paths. The connection of
    units i and j, i > j, has this port + i·(i − 1)/2 + j; 0: chosen by the system."""
    checksums: Literal["auto", "always", "never"] = "auto"
    """Whether writes have a CRC32C, with which damaged writes are detected and repeated; auto: with
    "tcp", if units may be on several machines. With "tcp", headers and messages always have a
    CRC32C. With other transports "always" adds it to messages, and two more messages for each
    write."""
    waiting: Literal["adaptive", "blocking", "spinning"] = "adaptive"
    """Waiting of a data thread: it polls briefly and then sleeps (adaptive), sleeps at once
    (blocking), or polls without end, which needs a core for each thread (spinning)."""
    launch: Literal["local", "ssh", "slurm", "mpirun", "by-hand"] = "local"
    """Start of units: as child processes, with ssh on `hosts`, with srun in the current Slurm
    allocation, with one mpirun on `hosts` or this machine, or by hand with the `daqloom unit`
    command that `daqloom control` prints. An mpirun ends all units when it loses one."""
    mpirun: Annotated[Program, When(".launch", ("mpirun",))] = "mpirun"
    """With launch mpirun: the program, of Open MPI or MPICH, such as "mpirun.mpich"."""
    hosts: tuple[Host, ...] = items(MOST_HOSTS)
    """With launch ssh or mpirun: machines on which units are started in turn, or, with
    `hosts.placement` = "table", as `hosts.units` assigns them. daqloom must have the same path on
    each machine."""
    bind: Address = "127.0.0.1"
    """Address of this machine at which the run control accepts units and operators ("0.0.0.0": all
    addresses); an address other than loopback requires `certificates`."""
    port: int = Field(default=0, ge=0, le=65535)
    """Port of the run control; 0: a free port, which it prints."""
    certificates: FileName = ""
    """Folder with certificates from `daqloom control certificates`, with which run control, units
    and operators authenticate each other (TLS)."""
    cores: Cores = ""
    """Processor cores of a machine, such as "0-3,8", that its units share equally and are pinned
    to; "auto": all cores. Default: not pinned. Memory is on the NUMA node of the core that first
    accesses it."""
    heartbeat: PositiveDuration = Field(default=0.2, le=60)
    """Time between two heartbeats of a unit (s)."""
    fault_timeout: PositiveDuration = Field(default=1.0, le=600)
    """Time for which a unit may be silent, stuck or unreachable before the others continue without
    it; at least three heartbeats (s)."""
    control_grace: Duration = Field(default=60.0, le=86_400)
    """With `daqloom control`: time for which units go on building if the run control has ended and
    none of them reaches it; "0 s": they end with the run control (s)."""
    supervise: bool = False
    """With `daqloom control`: whether the command starts the run control again if a signal or a
    failure of the program has ended it."""
    incomplete: Literal["deliver", "drop"] = "deliver"
    """Treatment of events that lack fragments of a lost unit: delivered with a mask of the missing
    fragments, or dropped; both are counted."""
    restart: bool = True
    """Whether lost units return automatically: ended processes are restarted, others are reset;
    false: `daqloom control reset N` brings unit N back. Units of an mpirun never return."""
    join_time: Annotated[Duration, Guess(when=(When("faults.injected"),))] = 1.0
    """In simulations: time from the start of a lost unit's process until the unit has joined the
    run (s)."""
    minimum: int = Field(default=1, ge=1, le=8192)
    """Smallest number of units with which a run continues; with fewer units its state is error."""
    source: Literal["generator", "replay", "user"] = "generator"
    """Source of multi-fragment packets (MFPs): a generator with checkable content, a replay of
    `source_files`, or your own process through shared memory (user)."""
    source_files: FileName = ""
    """With source replay: folder or file written by `daqloom data generate` or by a run."""
    content: Literal["every", "once"] = "every"
    """With source generator: whether it fills every packet, or its buffer only once, so that
    filling costs no time during the measurement."""
    sink: Literal["check", "discard", "file", "user"] = "check"
    """Sink of built events: check (each byte is checked; a replay by the checksums of the
    recording), discard (unread), file (written to `sink_files`), or user (your own process, through
    shared memory)."""
    sink_files: FileName = ""
    """With sink file: folder for the files, which can be replayed later."""
    consumers: Annotated[Literal["one", "exclusive", "shared"], When(".sink", ("user",))] = "one"
    """Processes that may read the output of a unit: one; up to 16, each multi-event packet for one
    of them (exclusive), which divides the load; or up to 16, each packet for all of them (shared).
    Up to 4 samplers may read copies of some packets, with every sink."""
    consumer_timeout: Annotated[Duration, When(".consumers", ("exclusive", "shared"))] = 10.0
    """Time in which a consumer that holds multi-event packets must acknowledge one; otherwise it
    loses them, and exclusive ones go to another consumer; "0 s": no limit (s)."""
    when_unwritable: Literal["count", "stop"] = "count"
    """With sink file: reaction to events that cannot be written (to a full disk, for example).
    count: they are counted as not written, the unit tries again, and the others continue; stop: the
    run stops. In both cases `daqloom measure` has exit code 1."""
    when_full: Literal["discard", "wait"] = "discard"
    """Reaction of a builder unit to a full output buffer: discard (events are discarded and
    counted), or wait (for free space, which stops the whole event builder: backpressure)."""
    stream_buffer: PositiveBytes = Field(default=64_000_000, le=1 << 40)
    """Buffer between the source of a stream and its readout unit (B)."""
    output_buffer: PositiveBytes = Field(default=256_000_000, le=1 << 40)
    """Buffer of a builder unit, in which events are built and from which sinks read (B)."""
    output_alignment: PositiveBytes = Field(default=64, ge=64, le=1 << 21)
    """Multi-event packets start at multiples of this power of two in the output buffer, which
    starts at a page; "4 KiB": at pages, for memory that your process registers with a GPU (B)."""
    duration: PositiveDuration = 5.0
    """Wall-clock time of `daqloom measure`, warm-up included; run.duration is simulated time and
    does not apply (s)."""
    warmup: Duration = 0.5
    """Wall-clock time at the start that metrics do not count (s)."""
    events: int = Field(default=0, ge=0, le=1 << 53)
    """Number of events after which `daqloom measure` ends, unless `duration` ends it earlier; 0:
    only `duration` ends it."""
    prometheus_port: int = Field(default=0, ge=0, le=65535)
    """First port of the counters for Prometheus: unit N serves them on this port + N; 0: no
    counters served."""
    prometheus_run_port: int = Field(default=0, ge=0, le=65535)
    """Port of `bind` with the metrics of the whole run for Prometheus; 0: not served."""
    influxdb: Url = ""
    """URL to which the run control posts the same metrics each second, in line protocol, such as
    "http://127.0.0.1:8086/write?db=daqloom"; empty: nowhere. A token is in the environment variable
    DAQLOOM_INFLUXDB_TOKEN."""

    @property
    def over_tcp(self) -> bool:
        """Whether data goes through the kernel's TCP."""
        return re.match(r"tcp$|libfabric:(tcp|sockets|net)", self._between) is not None

    @property
    def has_sockets(self) -> bool:
        """Whether units have TCP sockets of their own, with the options of `[measure]`."""
        return self._between == "tcp"

    @property
    def restarts(self) -> bool:
        """Whether lost units return automatically."""
        return self.restart and self.launch != "mpirun"

    @property
    def _between(self) -> str:
        """Transport between machines."""
        return self.transport.removeprefix("shm+")

    @property
    def has_lab(self) -> bool:
        """Whether the measurement creates the scenario's network on this machine (laboratory)."""
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
        by_default = self.has_sockets and self.spans_machines
        return self.checksums == "always" or (self.checksums == "auto" and by_default)

    def bearing(self) -> dict[str, Any]:
        """Return the keys that affect a result and differ from their defaults, as a JSON object."""
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
        if not self.has_sockets and (used := [key for key in options if getattr(self, key)]):
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
        if self._between == "mpi" and self.launch != "mpirun":
            raise ValueError(
                f'transport = "{self.transport}" requires launch = "mpirun", because a unit is a '
                f'rank of MPI; it is "{self.launch}"'
            )
        if self.launch == "mpirun" and self.restart and "restart" in self.model_fields_set:
            raise ValueError(
                'restart has no use with launch = "mpirun", which ends all units when it loses '
                "one; leave it out, or use another launch"
            )
        if self.launch == "ssh" and not self.hosts:
            raise ValueError('launch = "ssh" requires hosts, such as hosts = ["node1", "node2"]')
        if not ipaddress.ip_address(self.bind).is_loopback and not self.certificates:
            raise ValueError(
                f"bind = {self.bind} is reachable from other machines and requires certificates; "
                "`daqloom control certificates DIR` makes them, certificates = DIR uses them"
            )
        if self.output_alignment.bit_count() != 1:
            raise ValueError(
                f"output_alignment = {self.output_alignment} B is not a power of two; expected one "
                'such as "4 KiB"'
            )
        for kind, needed in (("source", "replay"), ("sink", "file")):
            if getattr(self, kind) == needed and not getattr(self, f"{kind}_files"):
                raise ValueError(f'{kind} = "{needed}" requires {kind}_files, a folder')
        return self

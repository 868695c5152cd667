"""[measure]: how a scenario is built for real."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationInfo, model_validator

from daqloom.scenario import inputs
from daqloom.scenario.part import Part
from daqloom.scenario.quantities import TIME, PositiveBytes, PositiveSeconds, Seconds

MOST_HOSTS = 8192
MOST_CORES = 4096
HEARTBEATS_PER_TIMEOUT = 3
WHEREABOUTS = frozenset(
    {"hosts", "bind", "network", "port", "certificates", "sink_files", "prometheus_port"}
)
"""Keys that say where, and change nothing of what is measured."""


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value)) if isinstance(value, str) else _no_address()
    except ValueError:
        return _no_address()


def _no_address() -> str:
    raise ValueError('is no IP address; expected one of this machine, such as "127.0.0.1"')


def _text(form: str, sentence: str) -> BeforeValidator:
    """Of that form, a regular expression; `sentence` is said of any other."""

    def check(value: object) -> str:
        if isinstance(value, str) and re.fullmatch(form, value):
            return value
        raise ValueError(sentence)

    return BeforeValidator(check)


TransportName = Annotated[
    str,
    _text(
        r"shm|libfabric:[A-Za-z0-9_;-]{1,40}",
        'is no transport; expected "shm", or "libfabric:" and a provider that `fi_info` lists, '
        'such as "libfabric:tcp"',
    ),
]
Congestion = Annotated[
    str,
    _text(
        r"[a-z0-9_-]{0,15}",
        "is no congestion control of TCP; expected a name that "
        '`sysctl net.ipv4.tcp_allowed_congestion_control` lists, such as "cubic"',
    ),
]


def _network(value: object) -> str:
    try:
        if isinstance(value, str):
            return str(ipaddress.ip_network(value)) if value else ""
    except ValueError:
        pass
    raise ValueError('is no network; expected one such as "10.1.0.0/16"')


def _cores(value: object) -> str:
    if isinstance(value, str) and (value in ("", "auto") or cores(value)):
        return value
    raise ValueError('are no cores; expected "auto", or numbers and ranges such as "0-3,8"')


def cores(text: str) -> list[int]:
    """The processor cores of "0-3,8", in that order; none where the text is no such list."""
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
"""Never an option of ssh: it begins with a letter, a digit or an underscore."""


class Measure(Part):
    """[measure]: what a real run needs to know and no other method does."""

    transport: TransportName = Field(
        default="shm",
        description='"shm": units of one machine write into each other\'s memory; '
        '"libfabric:PROVIDER" ("libfabric:tcp", "libfabric:verbs;ofi_rxm"): over a network',
    )
    network: Annotated[str, BeforeValidator(_network)] = Field(
        default="",
        description="libfabric: network of the addresses under which units reach each other, such "
        'as "10.1.0.0/16"; else each takes the address with which it reaches the run control',
    )
    congestion: Congestion = Field(
        default="",
        description='libfabric over TCP: congestion control of the connections, such as "cubic"; '
        "else that of the route or the system",
    )
    waiting: Literal["adaptive", "blocking", "spinning"] = Field(
        default="adaptive",
        description="how a data thread waits: it polls a little and then sleeps, sleeps at once, "
        "or never sleeps, which needs a core of its own",
    )
    launch: Literal["local", "ssh", "slurm", "by-hand"] = Field(
        default="local",
        description="how units start: as children of the command, on `hosts` by ssh, with srun in "
        "this Slurm allocation, or by somebody else, who runs `daqloom unit`",
    )
    hosts: tuple[Host, ...] = Field(
        default=(),
        strict=False,
        max_length=MOST_HOSTS,
        description="ssh: machines that units are dealt out to, one after the other; daqloom has "
        "to be at the same path on each",
    )
    bind: Annotated[str, BeforeValidator(_address)] = Field(
        default="127.0.0.1",
        description="address of this machine where the run control listens for units and "
        'operators ("0.0.0.0": all); another one than loopback needs `certificates`',
    )
    port: int = Field(
        default=0, ge=0, le=65535, description="that it listens on; 0: a free one, which it prints"
    )
    certificates: str = Field(
        default="",
        max_length=4096,
        description="folder that `daqloom control certificates` made; run control and units prove "
        "with it who they are, and nobody else can listen or steer",
    )
    cores: Annotated[str, BeforeValidator(_cores)] = Field(
        default="",
        description='processor cores of a machine that its units share out among them: "0-3,8", '
        '"auto" for all; else the system decides. Memory is on the NUMA node of the core that '
        "first touches it",
    )
    heartbeat: PositiveSeconds = Field(
        default=0.2, le=60, description="from one sign of life of a unit to the next (s)"
    )
    fault_timeout: PositiveSeconds = Field(
        default=1.0,
        le=600,
        description="so long may a unit be silent, stand still or be out of reach before the "
        "others go on without it; at least three heartbeats (s)",
    )
    incomplete: Literal["deliver", "drop"] = Field(
        default="deliver",
        description="events that miss fragments of a lost unit: delivered with a mask that says "
        "which, or dropped; counted either way",
    )
    restart: bool = Field(
        default=True,
        description="whether lost units are brought back without being asked: ended processes "
        "started again, others reset; else `daqloom control reset N` does it",
    )
    minimum: int = Field(
        default=1,
        ge=1,
        le=8192,
        description="units that have to be left for a run to go on; it is in error with fewer",
    )
    source: Literal["generator", "replay", "user"] = Field(
        default="generator",
        description="where multi-fragment packets come from: made up with checkable content, read "
        "from `source_files`, or from a process of yours through shared memory",
    )
    source_files: str = Field(
        default="",
        max_length=4096,
        description="replay: folder or file that `daqloom data generate` or a run has written",
    )
    content: Literal["every", "once"] = Field(
        default="every",
        description="generator: whether it fills each packet anew, or its buffer once, so that "
        "filling costs the measurement nothing",
    )
    sink: Literal["check", "discard", "file", "user"] = Field(
        default="check",
        description="where built events go: checked byte for byte and discarded, discarded "
        "unread, written to `sink_files`, or to a process of yours through shared memory",
    )
    sink_files: str = Field(
        default="", max_length=4096, description="file: folder of the files, for a later replay"
    )
    when_full: Literal["discard", "wait"] = Field(
        default="discard",
        description="a builder unit whose output buffer is full discards events, which are "
        "counted, or waits for room, and everybody with it",
    )
    stream_buffer: PositiveBytes = Field(
        default=64_000_000,
        le=1 << 40,
        description="memory between the source of a stream and its readout unit (B)",
    )
    output_buffer: PositiveBytes = Field(
        default=256_000_000,
        le=1 << 40,
        description="memory of a builder unit, in which events are built and read (B)",
    )
    duration: PositiveSeconds = Field(
        default=5.0,
        description="real time of `daqloom measure`, warm-up included; other than run.duration, "
        "which is virtual (s)",
    )
    warmup: Seconds = Field(
        default=0.5, description="real time at the start that no metric counts (s)"
    )
    events: int = Field(
        default=0,
        ge=0,
        le=1 << 53,
        description="ends `daqloom measure` after so many events, if `duration` is not over "
        "before; 0: only by time",
    )
    prometheus_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="unit N serves its counters for Prometheus on this port + N; 0: it does not",
    )

    @property
    def over_tcp(self) -> bool:
        """Whether data goes through the kernel's TCP."""
        return re.match(r"libfabric:(tcp|sockets|net)", self.transport) is not None

    @property
    def spans_machines(self) -> bool:
        """Whether units of other machines may have to reach each other's."""
        local = self.launch == "local" or ipaddress.ip_address(self.bind).is_loopback
        return self.transport != "shm" and not local

    def bearing(self) -> dict[str, Any]:
        """What of it bears on a result and is not as usual, as JSON has it."""
        usual = Measure().model_dump(mode="json")
        mine = self.model_dump(mode="json", exclude=set(WHEREABOUTS))
        return {key: value for key, value in mine.items() if value != usual[key]}

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.fault_timeout < HEARTBEATS_PER_TIMEOUT * self.heartbeat:
            raise ValueError(
                f"fault_timeout = {TIME.format(self.fault_timeout)} is less than "
                f"{HEARTBEATS_PER_TIMEOUT} × heartbeat = {TIME.format(self.heartbeat)}; one late "
                "heartbeat would expel a unit"
            )
        if self.warmup >= self.duration:
            raise ValueError(
                f"warmup = {TIME.format(self.warmup)} leaves nothing of duration = "
                f"{TIME.format(self.duration)} to measure; shorten the one or lengthen the other"
            )
        if self.launch == "ssh" and not self.hosts:
            raise ValueError('launch = "ssh" needs hosts, such as hosts = ["node1", "node2"]')
        if not ipaddress.ip_address(self.bind).is_loopback and not self.certificates:
            raise ValueError(
                f"bind = {self.bind} can be reached from other machines and needs certificates; "
                "`daqloom control certificates DIR` makes them, certificates = DIR uses them"
            )
        for kind, needed in (("source", "replay"), ("sink", "file")):
            files = getattr(self, f"{kind}_files")
            if getattr(self, kind) == needed and not files:
                raise ValueError(f'{kind} = "{needed}" needs {kind}_files, a folder')
        folder = inputs.folder_of(info)
        for key in ("certificates", "source_files", "sink_files"):
            if given := getattr(self, key):
                self.__dict__[key] = str(inputs.resolve(given, folder))
        return self

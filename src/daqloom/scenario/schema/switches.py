"""[network.switch]: InfiniBand switches, and packet buffers of Ethernet switches for each level. A
model is a buffer architecture, or a switch product, which also sets the buffer's numbers. Sources:
"Buffer benchmarking for the ATLAS HL-LHC DAQ network" for sizes, cells and relative cost."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from daqloom.scenario.names import NodeName
from daqloom.scenario.quantities import (
    RATE,
    SIZE,
    BitRateOrNone,
    Bytes,
    PositiveBytes,
    PositiveSeconds,
    Seconds,
)
from daqloom.scenario.schema.links import MOST_PORTS
from daqloom.scenario.schema.part import (
    ASSUMED,
    CABLED,
    ETHERNET,
    FAT_TREE,
    INFINIBAND,
    RACKS,
    DefaultWith,
    Guess,
    Number,
    Part,
    When,
    items,
)
from daqloom.scenario.schema.scheduling import Scheduling
from daqloom.scenario.validation import validate

Model = Literal[
    "infinite", "shared-memory", "voq", "drop-tail", "software", "qfx5120-48y", "acx7100-48l"
]
Architecture = Literal["infinite", "shared-memory", "voq", "drop-tail", "software"]

ARCHITECTURES: dict[str, Architecture] = {
    "infinite": "infinite",
    "shared-memory": "shared-memory",
    "qfx5120-48y": "shared-memory",
    "voq": "voq",
    "acx7100-48l": "voq",
    "drop-tail": "drop-tail",
    "software": "software",
}

_SHARED_MEMORY: dict[str, Any] = {"buffer": "32 MB", "dedicated": "0 B", "port_limit": "0 B"}
_SHARED_MEMORY |= {"cell_size": "256 B", "cell_metadata": "64 B", "alpha": 1.0, "ports": 0}
_VOQ: dict[str, Any] = {"buffer": "8 GB", "port_limit": "0 B"}

DEFAULTS: dict[str, dict[str, Any]] = {
    "infinite": {},
    "shared-memory": _SHARED_MEMORY,
    # 48 × 25 GbE and 8 × 100 GbE; 5 MB dedicated, 27 MB shared. The paper gives no alpha; 1 is
    # assumed.
    "qfx5120-48y": _SHARED_MEMORY | {"dedicated": "5 MB", "ports": 56, "cost": 1.0},
    "voq": _VOQ,
    "acx7100-48l": _VOQ | {"cost": 2.5},
    "drop-tail": {"buffer": "0 B", "port_limit": "0 B", "queue_packets": 1000},
    # `daqloom switch costs` on a virtual server gives packet and batch costs of 28 and 20 ns with
    # buffers in CPU caches, 50 and 110 ns with buffers in memory. The defaults lie between.
    "software": {
        "queue_packets": 4096,
        "rings": "builders",
        "pace": "0 b/s",
        "pace_counts": "wire",
        "cores": 1,
        "packet_cost": "40 ns",
        "batch_cost": "100 ns",
        "descriptors": 512,
        "memory_bandwidth": "0 B/s",
        "pause_at": 0,
    },
}
"""The buffer keys that each model uses, with their defaults."""

COMMON_KEYS = frozenset({"model", "cost", "ecn_threshold", "name", *Scheduling.model_fields})

USUAL = "hdr-40"
OF_A_PRODUCT = frozenset({f"network.switch.{key}" for key in ("radix", "latency", "buffer")})
OF_A_PRODUCT |= {"network.links.rate"}
"""Keys whose defaults depend on the InfiniBand switch product. Sources: data sheets for ports,
rates and port-to-port latencies. The flit-level study measured a buffer of 64 KiB for each port and
virtual lane on the SB7700; the same is assumed for the HDR switch."""


def _keys_of(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the keys with defaults of the model that a table names; None if the model is
    unknown."""
    model = table.get("model", "infinite")
    return DEFAULTS.get(model) if isinstance(model, str) else None


def _guess(*models: str) -> Guess:
    """Return the mark for a key whose default is a guess for the given models."""
    return Guess(when=(When(".model", models),))


def _of_product(sb7700: object, hdr_40: object) -> Any:
    """Return the marks for a key whose default depends on the switch product."""
    default = DefaultWith(".model", {"sb7700": sb7700, "hdr-40": hdr_40})
    return default, Guess(unless_given=".model")


class PacketBuffer(Part):
    """The packet buffer of an output-queued switch."""

    model: Model = "infinite"
    """Buffer architecture: infinite (records its peak); shared-memory (dedicated and shared cells,
    dynamic threshold); voq (deep buffer, one virtual output queue per ingress and egress pair);
    drop-tail (one FIFO per output); software (a software switch: a server with a paced ring for
    each destination); or a product with its numbers: qfx5120-48y is shared-memory, acx7100-48l is
    voq."""
    buffer: Annotated[Bytes, _guess("shared-memory", "voq")] = 0
    """Total packet buffer: the dedicated part and the shared pool. Only drop-tail may have "0 B":
    then only the limits of its queues apply (B)."""
    dedicated: Bytes = 0
    """Part of the buffer that is divided evenly among the ports (B)."""
    alpha: Annotated[Number, _guess("shared-memory", "qfx5120-48y")] = Field(
        default=1.0, gt=0, le=1e6
    )
    """Dynamic threshold: in addition to its dedicated part, an output may use alpha × the free
    shared pool; 1e6 means practically no threshold. SONiC's dynamic_th n is 2^n, Junos'
    dynamic-threshold n is 2^(n - 7): see `daqloom topology buffers`."""
    port_limit: Bytes = 0
    """Limit on the occupancy of one output (voq: of one virtual output queue); "0 B" = no limit
    (B)."""
    cell_size: Annotated[Bytes, _guess("shared-memory")] = 0
    """Size of the cells that packets occupy; "0 B" = no cells, packets count their bytes (B)."""
    cell_metadata: Annotated[Bytes, _guess("shared-memory")] = 0
    """Metadata in the first cell of each packet (B)."""
    ports: int = Field(default=0, ge=0, le=10_000)
    """Number of ports that share the dedicated part, at least as many as are connected; 0 = those
    that the scenario connects."""
    queue_packets: Annotated[int, _guess("drop-tail")] = Field(default=0, ge=0, le=1_000_000_000)
    """Limit on the packets in one drop-tail queue, or in one ring of a software switch; 0 = no
    limit (drop-tail only)."""
    rings: Literal["builders", "hosts"] = "builders"
    """Destinations that have their own ring in a software switch: the hosts of builder units, or
    all hosts. Frames to other destinations use one ring per output."""
    pace: BitRateOrNone = 0
    """Rate at which a software switch sends from the ring of a destination; "0 b/s" = the rate of
    the link (b/s)."""
    pace_counts: Literal["wire", "ip"] = "wire"
    """Bits that the pace counts: all bits on the wire with preamble and gap, or only those of IP
    packets."""
    cores: Annotated[int, _guess("software")] = Field(default=1, ge=1, le=1024)
    """Number of cores of a software switch; each serves its share of the ports."""
    packet_cost: Annotated[Seconds, Field(le=1.0), _guess("software")] = 0.0
    """CPU time of a software switch for each packet (s)."""
    batch_cost: Annotated[Seconds, Field(le=1.0), _guess("software")] = 0.0
    """Additional CPU time of a software switch for each batch of at most 32 packets from an input
    or to an output (s)."""
    descriptors: Annotated[int, _guess("software")] = Field(default=512, ge=1, le=1_000_000)
    """Number of descriptors of each port of a software switch, in each direction: packets in the
    network card, before and after the rings."""
    memory_bandwidth: BitRateOrNone = 0
    """Memory bandwidth of a software switch, which each byte uses twice; "0 B/s" = no limit."""
    pause_at: int = Field(default=0, ge=0, le=1_000_000)
    """Number of packets in a ring of a software switch above which the switch sends pause frames
    (IEEE 802.3) on the ports from which the packets arrive. At half this number, these ports may
    send again. 0 = never. Requires cores = 1."""
    ecn_threshold: Bytes = 0
    """ECN threshold: a packet is marked with congestion experienced if its output has more bytes
    queued; "0 B" = never (B)."""
    cost: Number = 1.0
    """Price relative to the qfx5120-48y, for comparisons."""

    @property
    def architecture(self) -> Architecture:
        """The buffer architecture of `model`, also if the model is a product."""
        return ARCHITECTURES[self.model]

    @property
    def shared(self) -> int:
        """Size of the shared pool (B)."""
        return self.buffer - self.dedicated

    def holds(self, frame_bytes: int, connected_ports: int) -> bool:
        """Return whether one frame fits into a shared memory that is otherwise empty."""
        cell = self.cell_size or 1
        dedicated = self.dedicated // (self.ports or connected_ports) // cell
        room = dedicated + self.shared // cell
        if self.port_limit:
            room = min(room, self.port_limit // cell)
        return -(-(frame_bytes + self.cell_metadata) // cell) <= room

    @classmethod
    def foreign_keys(cls, table: Mapping[str, Any]) -> dict[str, str]:
        """Return the keys that a table's switch model does not have, as key → error sentence."""
        known, model = _keys_of(table), table.get("model", "infinite")
        own = table.keys() if known is None else known.keys()
        foreign = table.keys() & cls.model_fields.keys() - COMMON_KEYS - own
        refusals = {}
        for key in (key for key in table if key in foreign):
            users = ", ".join(name for name, keys in DEFAULTS.items() if key in keys)
            refusal = f'{key} is not a key of model = "{model}"'
            refusals[key] = f"{refusal}; leave it out, or choose a model that has it: {users}"
        return refusals

    @model_validator(mode="wrap")
    @classmethod
    def _fill_in_model(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        known = _keys_of(data)
        if known is None:
            return handler(data)
        foreign = cls.foreign_keys(data)
        data = {key: value for key, value in data.items() if key not in foreign}
        switch = validate(handler, {**known, **data}, foreign.values())
        # Defaults of the model count as not given, so that another model may replace them.
        switch.model_fields_set.intersection_update(data)
        return switch

    @model_validator(mode="after")
    def _check(self) -> Self:
        size = SIZE.format
        if self.architecture in ("shared-memory", "voq") and self.buffer == 0:
            raise ValueError('buffer is zero; for a switch that never drops use model = "infinite"')
        if self.dedicated > self.buffer:
            whole = f"the whole buffer of {size(self.buffer)}"
            raise ValueError(f"dedicated = {size(self.dedicated)} is more than {whole}")
        if self.cell_size > self.buffer:
            raise ValueError(
                f"cell_size = {size(self.cell_size)} is larger than the buffer of "
                f"{size(self.buffer)}; a buffer holds at least one cell"
            )
        if self.cell_metadata and self.cell_metadata >= self.cell_size:
            raise ValueError(
                f"cell_metadata = {size(self.cell_metadata)} leaves no space for data in a cell of "
                f"{size(self.cell_size)}"
            )
        if self.architecture == "software" and self.queue_packets == 0:
            raise ValueError("queue_packets is zero; a ring holds at least one packet")
        if self.pause_at and self.cores > 1:
            raise ValueError(
                f"pause_at = {self.pause_at} needs one core, as another one may have the port that "
                f"is to pause, and cores = {self.cores}; leave one of them out"
            )
        sizes = (self.buffer, self.port_limit, self.queue_packets)
        if self.architecture == "drop-tail" and not any(sizes):
            limits = "set queue_packets, port_limit or buffer"
            raise ValueError(f'drop-tail has no limit; {limits}, or choose model = "infinite"')
        return self


class Switch(Scheduling, PacketBuffer):
    """[network.switch.core] and other levels: each output-queued Ethernet switch of the level."""

    @model_validator(mode="after")
    def _check_scheduling(self) -> Self:
        if self.architecture == "software" and self.scheduling == "weighted":
            raise ValueError(
                'scheduling = "weighted" is not for model = "software", whose classes are served '
                'strictly; set scheduling to "strict" or "fifo"'
            )
        return self

    def of_its_model(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return the entries of a switch table whose keys this model has."""
        used = COMMON_KEYS | DEFAULTS[self.model].keys()
        unused = {"weights"} if self.scheduling != "weighted" else set()
        return {key: value for key, value in table.items() if key in used - unused}


class NamedSwitch(Switch):
    """An entry of `network.switch.named`: one output-queued switch."""

    name: NodeName
    """Name of the switch in the network."""


LEVELS = ("core", "tor", "leaf", "spine")
"""Levels of Ethernet switches."""


def _may_drop(value: Callable[[str], object]) -> bool:
    """Return whether some Ethernet switch may drop packets; `value` returns the value of a key."""
    named = value("network.switch.named")
    models = [value(f"network.switch.{level}.model") for level in LEVELS]
    if isinstance(named, list | tuple):
        models += [each.get("model") for each in named if isinstance(each, dict)]
    drops = any(ARCHITECTURES.get(str(model), "infinite") != "infinite" for model in models)
    return drops and not _is_shaped(value)


def _is_shaped(value: Callable[[str], object]) -> bool:
    """Return whether links are slower than 1 Gb/s, as in a laboratory with traffic shapers.
    Transmission of a frame then takes far longer than any delay of a host."""
    racks = value("network.shape") in ("rack", "farm")
    rate = value(f"network.links{'.source' if racks else ''}.rate")
    try:
        bps = RATE.parse(rate)
    except ValueError:
        return False  # empty (imported dumps) or a name such as EDR
    return 0 < bps < 10**9


MAY_DROP = (_may_drop, "a switch may drop, 1 Gb/s or more")
"""Test for `GuessedWhere`: whether random delays of hosts are assumed, so that drops in simulated
Ethernet switches do not depend on exactly equal times."""


class InfinibandSwitch(Part):
    """[network.switch]: all switches of an InfiniBand network; products fill in numbers."""

    model: Annotated[Literal["sb7700", "hdr-40"], INFINIBAND] = "hdr-40"
    """Switch product: sets the defaults of radix, links.rate, latency and buffer."""
    radix: Annotated[int, FAT_TREE, *_of_product(36, 40)] = Field(default=40, ge=2, le=MOST_PORTS)
    """Number of ports of a switch. If neither radix nor model is given, as many ports as the tree
    needs."""
    latency: Annotated[PositiveSeconds, INFINIBAND, *_of_product("90 ns", "130 ns")] = 130e-9
    """Delay from a flit's arrival at a switch until it can leave (s)."""
    buffer: Annotated[PositiveBytes, INFINIBAND, Guess(unless_given=".model")] = 64 * 1024
    """Input buffer of a port, for each virtual lane (B)."""
    input_queue: Annotated[Literal["virtual-output", "fifo"], INFINIBAND] = "virtual-output"
    """Queues at an input: one for each output (virtual-output), or one for all outputs (fifo)."""
    crossbar_speedup: Annotated[int, INFINIBAND, ASSUMED] = Field(default=2, ge=1, le=64)
    """Number of packets that one input may send at the same time; with 1, a small message may wait
    for the end of a data stream."""
    crossbar_arbiter: Annotated[Literal["round-robin", "islip"], INFINIBAND] = "round-robin"
    """Matching of free inputs with free outputs. round-robin: each output in turn selects its next
    input, so that no output stays idle needlessly; islip: all outputs grant at the same time, then
    inputs accept."""
    crossbar_iterations: Annotated[
        int, INFINIBAND, When(".crossbar_arbiter", ("islip",)), ASSUMED
    ] = Field(default=1, ge=1, le=4)
    """Number of iterations of an iSLIP matching. After few iterations an output may stay idle
    although a free input has packets for it."""
    credit_release: Annotated[Literal["at-tail", "per-block"], INFINIBAND] = "at-tail"
    """Release of a packet's buffer: the whole buffer with the last byte, or block by block."""
    credit_update_interval: Annotated[Seconds, INFINIBAND] = 0.0
    """Shortest time between two credit updates of a lane (s)."""
    credit_update_size: Annotated[PositiveBytes, INFINIBAND] = Field(default=8, le=64)
    """Size of a credit update on the wire (B)."""
    head_of_queue_lifetime: Annotated[Seconds, INFINIBAND] = 0.0
    """Head-of-queue lifetime: a switch discards a packet that has been first in its queue for this
    time; "0 s": never (s)."""


class Switches(InfinibandSwitch):
    """[network.switch]: the switches."""

    core: Annotated[Switch, ETHERNET] = Field(default_factory=Switch)
    """Racks: between readout units and uplinks; elsewhere: above the spines."""
    tor: Annotated[Switch, ETHERNET, RACKS] = Field(default_factory=Switch)
    """Top of rack, before the builder units."""
    leaf: Annotated[Switch, ETHERNET, CABLED] = Field(default_factory=Switch)
    """Switches with hosts."""
    spine: Annotated[Switch, ETHERNET, CABLED] = Field(default_factory=Switch)
    """Switches between leaves."""

    named: Annotated[tuple[NamedSwitch, ...], ETHERNET, CABLED] = items(1024)
    """Single switches with other keys than their level, such as [{name = "leaf00", model =
    "voq"}]."""

    def at_level(self, level: str) -> Switch:
        """Return the buffers of an Ethernet switch of a level: core, tor, leaf or spine."""
        switch: Switch = getattr(self, level)
        return switch

    @property
    def all_of_ethernet(self) -> list[Switch]:
        """The switches of each level, and single ones."""
        return [*map(self.at_level, LEVELS), *self.named]

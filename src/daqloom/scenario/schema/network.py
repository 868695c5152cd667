"""[network]: technology, shape, switches and cables."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from daqloom.base.words import reason_of
from daqloom.scenario import inputs
from daqloom.scenario.dumps import dumps_of, is_neighbour_table, shipped_fabrics
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.files import is_allowed, open_regular
from daqloom.scenario.names import NodeName
from daqloom.scenario.quantities import PositiveBytes
from daqloom.scenario.schema.hosts import MOST_HOSTS
from daqloom.scenario.schema.lanes import Lanes
from daqloom.scenario.schema.links import MOST_CABLES, MOST_PORTS, Cable, Links
from daqloom.scenario.schema.part import (
    ASSUMED,
    CABLED,
    ETHERNET,
    FAT_TREE,
    INFINIBAND,
    DefaultWith,
    Part,
    When,
    items,
)
from daqloom.scenario.schema.switches import Switches

SMALLEST_MTU_BYTES = 576
LARGEST_MTU_BYTES = 65_000

_FARM = When(".shape", ("farm",))
_IMPORTED = When(".shape", ("imported",))
_CABLES = When(".shape", ("cables",))
_ECMP = When(".routing", ("ecmp", ""), or_without=True)
_ONE_SWITCH = When(".shape", ("one-switch",))


class Shape(Part):
    """Technology and shape of the network, which determine the other keys that apply."""

    technology: Annotated[Literal["ethernet", "infiniband"], ASSUMED] = "ethernet"
    """Technology of links and switches."""
    shape: Annotated[
        Literal["rack", "farm", "one-switch", "fat-tree", "imported", "cables"],
        DefaultWith(".technology", {"infiniband": "fat-tree"}),
    ] = "rack"
    """Shape of the network: one rack behind a core switch, racks behind core routers (farm), all
    hosts on one switch, a regular tree (fat-tree), a real network from its dumps (imported), or a
    list of cables."""


class FatTree(Part):
    """A regular tree."""

    leaves: Annotated[int, FAT_TREE, ASSUMED] = Field(default=18, ge=1, le=1024)
    """Number of leaf switches (with pods: of each pod)."""
    spines: Annotated[int, FAT_TREE, ASSUMED] = Field(default=10, ge=1, le=1024)
    """Number of spine switches (with pods: of each pod)."""
    spine_links: Annotated[int, FAT_TREE, ASSUMED] = Field(default=2, ge=1, le=64)
    """Number of cables between each leaf and each spine."""
    hosts_per_leaf: Annotated[int, FAT_TREE, ASSUMED] = Field(default=20, ge=1, le=MOST_PORTS)
    """Number of host ports of a leaf that are used."""
    pods: Annotated[int, FAT_TREE] = Field(default=0, ge=0, le=256)
    """Number of pods, each a tree of leaves and spines, below a third level of switches; 0: no
    third level."""
    cores: Annotated[int, FAT_TREE] = Field(default=0, ge=0, le=1024)
    """Number of core switches above each spine of every pod."""
    core_links: Annotated[int, FAT_TREE] = Field(default=1, ge=1, le=64)
    """Number of cables between a spine and each of its core switches."""


class Network(FatTree, Shape):
    """[network]: hosts, switches and cables."""

    mtu: Annotated[PositiveBytes, ETHERNET] = Field(
        default=1500, ge=SMALLEST_MTU_BYTES, le=LARGEST_MTU_BYTES
    )
    """Largest IP packet; its frame has 18 B more in buffers (header, FCS), and another 20 B on the
    wire (preamble, gap) (B)."""
    racks: Annotated[int, _FARM, ASSUMED] = Field(default=3, ge=1, le=1024)
    """Number of racks, each with `builders.units` builder units."""
    routers: Annotated[int, _FARM, ASSUMED] = Field(default=1, ge=1, le=2)
    """Number of core routers: readout units are connected to one router each, in turn; racks to
    all."""
    hosts: Annotated[int, _ONE_SWITCH] = Field(default=0, ge=0, le=MOST_PORTS)
    """Number of hosts on the switch; 0: one for each unit and each spare."""
    dumps: Annotated[str, _IMPORTED] = Field(default="", max_length=4096)
    """Name of a shipped fabric; or a folder with ibnetdiscover.txt and opensm-lfts.dump, or with
    LLDP neighbour tables; or a file with a list of nodes and cables."""
    switches: Annotated[tuple[NodeName, ...], _CABLES] = items(1024)
    """Names of the switches; all other ends of cables are hosts, with one cable each."""
    cables: Annotated[tuple[Cable, ...], _CABLES] = items(MOST_CABLES)
    """Cables of the network, such as [{ends = ["node0", "leaf0"]}]."""
    routing: Annotated[str, CABLED] = Field(default="", max_length=40)
    """Forwarding tables: imported, d-mod-k, minimal, minimal:TIE; on Ethernet also ecmp (a hash of
    the flow selects one of the shortest paths). Default: ecmp on Ethernet, else the tables of the
    dumps, minimal for shape cables, and d-mod-k for others. For linear shift with folded units also
    mended: tables and an order of builder units computed for the working cables, or the default if
    it is as good."""
    hash_seed: Annotated[Literal["per-switch", "common"], ETHERNET, _ECMP] = "per-switch"
    """Seed of the ECMP hash: one per switch, or one for all switches (common). With a common seed
    the switches of two levels select alike, so some links stay unused (polarisation). All seeds
    change with run.seed."""
    links: Links = Field(default_factory=Links)
    """Cables."""
    switch: Switches = Field(default_factory=Switches)
    """Switches."""
    lanes: Annotated[Lanes, INFINIBAND] = Field(default_factory=Lanes)
    """Virtual lanes."""

    @property
    def is_racks(self) -> bool:
        """Whether the shape is a rack or a farm (several racks)."""
        return self.shape in ("rack", "farm")

    @property
    def spreads(self) -> bool:
        """Whether switches select one of several paths by a hash of the flow (ECMP)."""
        by_hash = self.technology == "ethernet" and self.routing in ("", "ecmp")
        return self.is_racks or (by_hash and self.shape != "one-switch")

    @property
    def more_hosts(self) -> str:
        """End of an error sentence on too few hosts: the key that sets more hosts."""
        one_switch = self.shape == "one-switch"
        return "or a larger network.hosts" if one_switch else "more leaves or more hosts_per_leaf"

    @property
    def folder(self) -> Path:
        """The folder of the dumps, or a single file."""
        return shipped_fabrics().get(self.dumps, Path(self.dumps))

    def digest(self) -> str:
        """Return a digest of the dumps' content, "" for other shapes. Raises ScenarioError if they
        cannot be read."""
        if self.shape != "imported":
            return ""
        digest = hashlib.sha256()
        for path in dumps_of(self.folder):
            if is_neighbour_table(path):  # named after its device
                digest.update(f"{path.name}\n".encode(errors="surrogateescape"))
            try:
                with open_regular(path) as file:
                    while part := file.read(1 << 20):
                        digest.update(part)
            except OSError as error:
                raise ScenarioError(f"{path} cannot be read: {reason_of(error)}") from None
        return digest.hexdigest()

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.shape == "cables" and not (self.switches and self.cables):
            refusal = 'shape = "cables" requires switches, such as ["leaf0"]'
            raise ValueError(f'{refusal}, and cables, such as [{{ends = ["node0", "leaf0"]}}]')
        if self.shape == "imported":
            self._find_dumps(inputs.folder_of(info))
        elif self.shape in ("fat-tree", "one-switch") and self.links.rate == 0:
            refusal = 'links.rate = "0 b/s" takes the rates of imported dumps'
            raise ValueError(f'{refusal}; {self.shape} requires a rate, such as "200 Gb/s" or HDR')
        hosts = self.leaves * self.hosts_per_leaf * max(1, self.pods)
        if self.shape == "fat-tree" and hosts > MOST_HOSTS:
            limit = f"more than {MOST_HOSTS} hosts"
            raise ValueError(f"the network has {limit}; reduce leaves or hosts_per_leaf")
        if self.shape == "fat-tree" and not {"radix", "model"} & self.switch.model_fields_set:
            self._take_radix()
        return self

    def _take_radix(self) -> None:
        """Set the number of ports to that of the fullest switch, if larger than the default."""
        needed = max(
            self.hosts_per_leaf + self.spines * self.spine_links,
            self.leaves * self.spine_links + self.cores * self.core_links,
            self.pods * self.core_links,
        )
        switch = self.switch.model_copy()
        switch.__dict__["radix"] = min(max(self.switch.radix, needed), MOST_PORTS)
        self.__dict__["switch"] = switch

    def _find_dumps(self, folder: Path) -> None:
        if not self.dumps:
            raise ValueError('shape = "imported" requires dumps, such as "cluster64" or a folder')
        if not self.folder.is_absolute():
            self.__dict__["dumps"] = str(inputs.resolve(self.dumps, folder))
        found = is_allowed(self.folder) and (self.folder.is_dir() or self.folder.is_file())
        if not found:
            raise ValueError(
                f'dumps = "{self.dumps[:200]}" is not a folder or file; expected a folder with '
                "ibnetdiscover.txt or LLDP tables, a list of cables, or the name of a fabric that "
                "`daqloom topology list` shows"
            )

"""What frames an entry of the flow table matches: the fields of OpenFlow that the switch looks at.

They are those of `Match` of the engine: ingress, Ethernet destination and type, VLAN, protocol,
prefix of the destination in IPv4 or IPv6, ports of TCP and UDP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from pyof.v0x04.asynchronous.error_msg import BadMatchCode
from pyof.v0x04.common.flow_match import MatchType, OxmClass, OxmTLV, VlanId
from pyof.v0x04.common.flow_match import OxmOfbMatchField as Field

from daqloom._switch import Match
from daqloom.softswitch.openflow.refused import RefusedError

IPV4, IPV6 = 0x0800, 0x86DD
TCP, UDP = 6, 17
WIDTHS = {
    Field.OFPXMT_OFB_IN_PORT: 4,
    Field.OFPXMT_OFB_ETH_DST: 6,
    Field.OFPXMT_OFB_ETH_TYPE: 2,
    Field.OFPXMT_OFB_VLAN_VID: 2,
    Field.OFPXMT_OFB_IP_PROTO: 1,
    Field.OFPXMT_OFB_IPV4_DST: 4,
    Field.OFPXMT_OFB_IPV6_DST: 16,
    Field.OFPXMT_OFB_TCP_SRC: 2,
    Field.OFPXMT_OFB_TCP_DST: 2,
    Field.OFPXMT_OFB_UDP_SRC: 2,
    Field.OFPXMT_OFB_UDP_DST: 2,
}
"""Bytes of the value of each field that can be matched."""
_NETWORKS = {Field.OFPXMT_OFB_IPV4_DST: IPV4, Field.OFPXMT_OFB_IPV6_DST: IPV6}
_PORTS = {
    Field.OFPXMT_OFB_TCP_SRC: ("from_port", TCP),
    Field.OFPXMT_OFB_TCP_DST: ("to_port", TCP),
    Field.OFPXMT_OFB_UDP_SRC: ("from_port", UDP),
    Field.OFPXMT_OFB_UDP_DST: ("to_port", UDP),
}


@dataclass(frozen=True)
class Network:
    """Addresses that begin alike."""

    address: int
    """Of 128 bits; that of IPv4 behind ::ffff:0:0/96."""
    prefix: int
    """Bits of it that count."""

    def covers(self, other: Network) -> bool:
        """Return whether each address of the other is one of these."""
        shift = 128 - self.prefix
        return self.prefix <= other.prefix and self.address >> shift == other.address >> shift


@dataclass(frozen=True)
class FlowMatch:
    """What a frame must have; None: it may be anything."""

    ingress: int | None = None
    """Number of the port in the switch, from 0."""
    destination: int | None = None
    ethertype: int | None = None
    vlan: int | None = None
    """0: without a tag."""
    protocol: int | None = None
    to: Network | None = None
    from_port: int | None = None
    to_port: int | None = None

    def covers(self, other: FlowMatch) -> bool:
        """Return whether each frame that the other matches is matched by this one."""
        return all(
            mine is None or mine == its or (_is_network(mine, its) and mine.covers(its))
            for mine, its in self._beside(other)
        )

    def overlaps(self, other: FlowMatch) -> bool:
        """Return whether both may match the same frame."""
        return all(
            mine is None
            or its is None
            or mine == its
            or (_is_network(mine, its) and (mine.covers(its) or its.covers(mine)))
            for mine, its in self._beside(other)
        )

    def _beside(self, other: FlowMatch) -> Iterable[tuple[Any, Any]]:
        return ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def for_engine(self) -> Match:
        """Return it as the engine takes it."""
        match = Match()
        match.destination, match.vlan = self.destination, self.vlan
        match.ethertype, match.protocol = self.ethertype, self.protocol
        match.from_port, match.to_port = self.from_port, self.to_port
        match.ingress = self.ingress
        if self.to is not None:
            match.set_to(self.to.address.to_bytes(16), self.to.prefix)
        return match


def _is_network(*values: object) -> bool:
    return all(isinstance(value, Network) for value in values)


def match_of(given: Any, ports: int) -> FlowMatch:
    """Return the match of a message, of a switch with so many ports. Raises RefusedError."""
    if given.match_type != MatchType.OFPMT_OXM:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_TYPE)
    found: dict[Field, tuple[int, int]] = {}
    for oxm in given.oxm_match_fields:
        field, value, mask = _value_of(oxm)
        if field in found:
            raise RefusedError(BadMatchCode.OFPBMC_DUP_FIELD)
        found[field] = value, mask
    values = {field: value for field, (value, _) in found.items()}
    ethertype = values.get(Field.OFPXMT_OFB_ETH_TYPE)
    protocol = values.get(Field.OFPXMT_OFB_IP_PROTO)
    keys: dict[str, Any] = {
        "ingress": _ingress(values.get(Field.OFPXMT_OFB_IN_PORT), ports),
        "destination": values.get(Field.OFPXMT_OFB_ETH_DST),
        "ethertype": ethertype,
        "vlan": _vlan(values.get(Field.OFPXMT_OFB_VLAN_VID)),
        "protocol": protocol,
    }
    if protocol is not None:
        _needs(ethertype in (IPV4, IPV6))
        if protocol not in (TCP, UDP):
            raise RefusedError(BadMatchCode.OFPBMC_BAD_VALUE)
    for field, (value, mask) in found.items():
        if field in _NETWORKS:
            _needs(ethertype == _NETWORKS[field])
            keys["to"] = _network(value, mask, 8 * WIDTHS[field])
        elif field in _PORTS:
            key, needed = _PORTS[field]
            _needs(protocol == needed)
            keys[key] = value
    return FlowMatch(**keys)


def _value_of(oxm: OxmTLV) -> tuple[Field, int, int]:
    """Return a field with its value and mask. Raises RefusedError."""
    if oxm.oxm_class != OxmClass.OFPXMC_OPENFLOW_BASIC or oxm.oxm_field not in WIDTHS:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_FIELD)
    field, width = Field(oxm.oxm_field), WIDTHS[oxm.oxm_field]
    ones = (1 << 8 * width) - 1
    data = bytes(oxm.oxm_value)
    if len(data) != (2 * width if oxm.oxm_hasmask else width):
        raise RefusedError(BadMatchCode.OFPBMC_BAD_LEN)
    value, mask = int.from_bytes(data[:width]), int.from_bytes(data[width:])
    if not oxm.oxm_hasmask:
        return field, value, ones
    if field not in _NETWORKS and mask != ones:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_MASK)
    if value & ~mask:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_WILDCARDS)
    return field, value, mask


def _ingress(number: int | None, ports: int) -> int | None:
    if number is not None and not 1 <= number <= ports:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_VALUE)
    return None if number is None else number - 1


def _vlan(value: int | None) -> int | None:
    """Return the number of a VLAN; without the bit that says that there is one, frames without a
    tag are meant."""
    if value is None or value == VlanId.OFPVID_NONE:
        return value
    if not VlanId.OFPVID_PRESENT < value < VlanId.OFPVID_PRESENT + 4095:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_VALUE)
    return int(value - VlanId.OFPVID_PRESENT)


def _network(value: int, mask: int, bits: int) -> Network:
    ones = (1 << bits) - 1
    prefix = mask.bit_count()
    if mask != ones ^ (ones >> prefix):
        raise RefusedError(BadMatchCode.OFPBMC_BAD_NW_ADDR_MASK)
    head = 0xFFFF << 32 if bits == 32 else 0
    return Network(head | value, 128 - bits + prefix)


def _needs(is_there: bool) -> None:
    if not is_there:
        raise RefusedError(BadMatchCode.OFPBMC_BAD_PREREQ)

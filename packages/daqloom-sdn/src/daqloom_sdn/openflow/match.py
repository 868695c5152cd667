"""Matches of the flow table: the OpenFlow fields that the switch supports.

They correspond to the engine's `Match`: ingress, Ethernet destination and type, VLAN, protocol,
destination prefix of IPv4 or IPv6, and TCP and UDP ports.
"""

from __future__ import annotations

from dataclasses import dataclass

from daqloom._switch import Match
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.errors import Error, RefusedError

IPV4, IPV6 = 0x0800, 0x86DD
TCP, UDP = 6, 17
BASIC_CLASS = 0x8000
"""Class of all fields in the specification (OFPXMC_OPENFLOW_BASIC)."""
VLAN_PRESENT = 0x1000
"""Bit in a VLAN number that is set for tagged frames (OFPVID_PRESENT)."""


@dataclass(frozen=True)
class Field:
    """An OpenFlow field that a match may contain."""

    key: str
    """Name of the field in the engine's match."""
    width: int
    """Size of the field's value (B)."""
    needs: tuple[str, tuple[int, ...]] | None = None
    """Key of another field, and the values of which a match must require one (7.2.3.6)."""


FIELDS = {
    0: Field("ingress", 4),
    3: Field("destination", 6),
    5: Field("ethertype", 2),
    6: Field("vlan", 2),
    10: Field("protocol", 1, ("ethertype", (IPV4, IPV6))),
    12: Field("to", 4, ("ethertype", (IPV4,))),
    27: Field("to", 16, ("ethertype", (IPV6,))),
    13: Field("from_port", 2, ("protocol", (TCP,))),
    14: Field("to_port", 2, ("protocol", (TCP,))),
    15: Field("from_port", 2, ("protocol", (UDP,))),
    16: Field("to_port", 2, ("protocol", (UDP,))),
}
"""Supported fields by their OpenFlow numbers (OFPXMT_OFB_…)."""


@dataclass(frozen=True)
class FlowMatch:
    """Field values that a frame must have."""

    fields: frozenset[tuple[str, int, int]] = frozenset()
    """Key of the engine's match, value, and mask of the relevant bits. `to` has 128 bits, with IPv4
    addresses in ::ffff:0:0/96; ports are numbered from 0; VLAN 0 matches untagged frames."""

    def covers(self, other: FlowMatch) -> bool:
        """Return whether this match includes every frame that `other` matches."""
        theirs = {key: (value, mask) for key, value, mask in other.fields}
        return all(
            key in theirs and mask & ~theirs[key][1] == 0 == (value ^ theirs[key][0]) & mask
            for key, value, mask in self.fields
        )

    def overlaps(self, other: FlowMatch) -> bool:
        """Return whether some frame can match both this match and `other`."""
        theirs = {key: (value, mask) for key, value, mask in other.fields}
        return all(
            key not in theirs or (value ^ theirs[key][0]) & mask & theirs[key][1] == 0
            for key, value, mask in self.fields
        )

    def engine_match(self) -> Match:
        """Return this match in the engine's format."""
        match = Match()
        for key, value, mask in self.fields:
            if key == "to":
                match.to, match.prefix = divmod(value, 1 << 64), mask.bit_count()
            else:
                setattr(match, key, value)
        return match


def match_of(record: Record, ports: int) -> FlowMatch:
    """Return the match in a message, for a switch with `ports` ports. Raises RefusedError."""
    if record.type != record.layout.type:
        raise RefusedError(Error.OFPBMC_BAD_TYPE)
    found: dict[Field, tuple[int, int]] = {}
    for oxm in record.fields:
        field, value, mask = _value_of(oxm)
        if field in found:
            raise RefusedError(Error.OFPBMC_DUP_FIELD)
        found[field] = value, mask
    values = {field.key: value for field, (value, _) in found.items()}
    if any(f.needs is not None and values.get(f.needs[0]) not in f.needs[1] for f in found):
        raise RefusedError(Error.OFPBMC_BAD_PREREQ)
    return FlowMatch(
        frozenset((field.key, *_engine_value(field, *found[field], ports)) for field in found)
    )


def _value_of(oxm: Record) -> tuple[Field, int, int]:
    """Return a field with its value and mask. Raises RefusedError."""
    number, has_mask = oxm.field_and_mask >> 1, oxm.field_and_mask & 1
    if oxm.oxm_class != BASIC_CLASS or number not in FIELDS:
        raise RefusedError(Error.OFPBMC_BAD_FIELD)
    field = FIELDS[number]
    if len(oxm.value) != field.width << has_mask:
        raise RefusedError(Error.OFPBMC_BAD_LEN)
    value = int.from_bytes(oxm.value[: field.width])
    ones = (1 << 8 * field.width) - 1
    mask = int.from_bytes(oxm.value[field.width :]) if has_mask else ones
    if field.key != "to" and mask != ones:
        raise RefusedError(Error.OFPBMC_BAD_MASK)
    if value & ~mask:
        raise RefusedError(Error.OFPBMC_BAD_WILDCARDS)
    return field, value, mask


def _engine_value(field: Field, value: int, mask: int, ports: int) -> tuple[int, int]:
    """Return value and mask in the form of FlowMatch. Raises RefusedError."""
    match field.key:
        case "to":
            bits = 8 * field.width
            ones = (1 << bits) - 1
            if mask != ones ^ (ones >> mask.bit_count()):
                raise RefusedError(Error.OFPBMC_BAD_NW_ADDR_MASK)
            return (0xFFFF << 32 if bits == 32 else 0) | value, ((1 << 128) - 1) ^ ones | mask
        case "ingress" if 1 <= value <= ports:
            return value - 1, mask
        case "vlan" if value == 0 or VLAN_PRESENT < value < VLAN_PRESENT + 4095:
            return value & ~VLAN_PRESENT, mask
        case "protocol" if value in (TCP, UDP):
            return value, mask
        case "ingress" | "vlan" | "protocol":
            raise RefusedError(Error.OFPBMC_BAD_VALUE)
    return value, mask

"""The meters of a switch, by the numbers that controllers give them."""

from dataclasses import dataclass

from daqloom._switch import Changes
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.messages import (
    ALL_METERS,
    LARGEST_METER,
    MeterCommand,
    MeterFlag,
)

KNOWN_FLAGS = sum(MeterFlag)


@dataclass(frozen=True)
class Meter:
    """A meter with one band, which drops what exceeds its rate."""

    flags: int
    rate: int
    """Rate in kb/s, or in packets a second."""
    burst: int
    """Burst on top of one frame, in kbit or packets."""
    since_s: float

    def enter(self, changes: Changes, number: int) -> None:
        """Add the change of the engine that makes it meter `number`."""
        is_of_packets = bool(self.flags & MeterFlag.PKTPS)
        unit = 1 if is_of_packets else 1000
        changes.set_meter(number - 1, is_of_packets, self.rate * unit, self.burst * unit)


class Meters:
    """Meters by their numbers, from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.by_number: dict[int, Meter] = {}

    def modify(self, message: Record, changes: Changes, now_s: float) -> list[int]:
        """Apply a meter-mod; return the numbers of the meters that it deletes. Raises
        RefusedError."""
        number, command = message.meter_id, message.command
        if command == MeterCommand.DELETE:
            gone = [each for each in self.by_number if number in (ALL_METERS, each)]
            for each in gone:
                del self.by_number[each]
            return gone
        if command not in (MeterCommand.ADD, MeterCommand.MODIFY):
            raise RefusedError(Error.OFPMMFC_BAD_COMMAND)
        if not 1 <= number <= self.most:
            is_legal = 1 <= number <= LARGEST_METER
            raise RefusedError(
                Error.OFPMMFC_OUT_OF_METERS if is_legal else Error.OFPMMFC_INVALID_METER
            )
        if command == MeterCommand.ADD and number in self.by_number:
            raise RefusedError(Error.OFPMMFC_METER_EXISTS)
        if command == MeterCommand.MODIFY and number not in self.by_number:
            raise RefusedError(Error.OFPMMFC_UNKNOWN_METER)
        meter = _meter_of(message, now_s)
        meter.enter(changes, number)
        self.by_number[number] = meter
        return []


def _meter_of(message: Record, now_s: float) -> Meter:
    flags = message.flags
    if flags & ~KNOWN_FLAGS or (flags & MeterFlag.KBPS and flags & MeterFlag.PKTPS):
        raise RefusedError(Error.OFPMMFC_BAD_FLAGS)
    if not message.bands:
        raise RefusedError(Error.OFPMMFC_BAD_BAND)
    [band] = message.bands  # the layout of the message has one at most
    if band.rate == 0:
        raise RefusedError(Error.OFPMMFC_BAD_RATE)
    return Meter(flags, band.rate, band.burst_size if flags & MeterFlag.BURST else 0, now_s)

"""Meters of a switch, by the numbers that controllers assign to them."""

from dataclasses import dataclass

from daqloom._switch import Changes
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.messages import ALL_METERS, LARGEST_METER, MeterCommand, MeterFlag

KNOWN_FLAGS = sum(MeterFlag)
BOTH_UNITS = MeterFlag.KBPS | MeterFlag.PKTPS


@dataclass(frozen=True)
class Meter:
    """A meter with one band, which drops packets above its rate."""

    message: Record
    """Meter-mod message of the last change."""
    since_s: float

    def enter(self, changes: Changes) -> None:
        """Add to `changes` the engine's step that sets the meter."""
        [band] = self.message.bands
        is_of_packets = bool(self.message.flags & MeterFlag.PKTPS)
        unit = 1 if is_of_packets else 1000
        burst = band.burst_size if self.message.flags & MeterFlag.BURST else 0
        changes.set_meter(self.message.meter_id - 1, is_of_packets, band.rate * unit, burst * unit)


class Meters:
    """Meters by number, from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.by_number: dict[int, Meter] = {}

    def modify(self, message: Record, changes: Changes, now_s: float) -> list[int]:
        """Apply a meter-mod; return the numbers of meters that it deletes. Raises RefusedError."""
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
        if message.flags & ~KNOWN_FLAGS or message.flags & BOTH_UNITS == BOTH_UNITS:
            raise RefusedError(Error.OFPMMFC_BAD_FLAGS)
        if not message.bands:  # its layout allows one at most
            raise RefusedError(Error.OFPMMFC_BAD_BAND)
        if message.bands[0].rate == 0:
            raise RefusedError(Error.OFPMMFC_BAD_RATE)
        meter = self.by_number[number] = Meter(message, now_s)
        meter.enter(changes)
        return []

"""The meters of a switch, by the numbers that controllers give them."""

from dataclasses import dataclass
from typing import Any

from pyof.v0x04.asynchronous.error_msg import MeterModFailedCode
from pyof.v0x04.controller2switch.meter_mod import (
    Meter,
    MeterBandType,
    MeterFlags,
    MeterModCommand,
)

from daqloom._switch import Changes
from daqloom.softswitch.openflow.refused import RefusedError

KNOWN_FLAGS = (
    MeterFlags.OFPMF_KBPS | MeterFlags.OFPMF_PKTPS | MeterFlags.OFPMF_BURST | MeterFlags.OFPMF_STATS
)


@dataclass(frozen=True)
class MeterEntry:
    """A meter with one band, which drops what exceeds its rate."""

    flags: int
    rate: int
    """In kb/s, or packets a second."""
    burst: int
    """In kbit, or packets; on top of one frame."""
    since_s: float

    def enter(self, changes: Changes, number: int) -> None:
        """Tell the engine of it."""
        is_of_packets = bool(self.flags & MeterFlags.OFPMF_PKTPS)
        unit = 1 if is_of_packets else 1000
        changes.set_meter(number - 1, is_of_packets, self.rate * unit, self.burst * unit)


class Meters:
    """Meters by their numbers, from 1 to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.by_number: dict[int, MeterEntry] = {}

    def modify(self, message: Any, changes: Changes, now_s: float) -> list[int]:
        """Do what a message of a controller asks for; return the numbers of meters that are gone.
        Raises RefusedError."""
        number = message.meter_id.value
        if message.command == MeterModCommand.OFPMC_DELETE:
            if number == Meter.OFPM_ALL:
                gone = list(self.by_number)
            else:
                gone = [number] if number in self.by_number else []
            for each in gone:
                del self.by_number[each]
            return gone
        if not 1 <= number <= self.most:
            raise RefusedError(
                MeterModFailedCode.OFPMMFC_OUT_OF_METERS
                if 1 <= number <= Meter.OFPM_MAX
                else MeterModFailedCode.OFPMMFC_INVALID_METER
            )
        is_new = message.command == MeterModCommand.OFPMC_ADD
        if is_new and number in self.by_number:
            raise RefusedError(MeterModFailedCode.OFPMMFC_METER_EXISTS)
        if not is_new and number not in self.by_number:
            raise RefusedError(MeterModFailedCode.OFPMMFC_UNKNOWN_METER)
        meter = _meter_of(message, now_s)
        meter.enter(changes, number)
        self.by_number[number] = meter
        return []


def _meter_of(message: Any, now_s: float) -> MeterEntry:
    flags = int(message.flags.value)
    if flags & ~KNOWN_FLAGS or (flags & MeterFlags.OFPMF_KBPS and flags & MeterFlags.OFPMF_PKTPS):
        raise RefusedError(MeterModFailedCode.OFPMMFC_BAD_FLAGS)
    if len(message.bands) != 1:
        raise RefusedError(
            MeterModFailedCode.OFPMMFC_OUT_OF_BANDS
            if message.bands
            else MeterModFailedCode.OFPMMFC_BAD_BAND
        )
    [band] = message.bands
    if band.band_type != MeterBandType.OFPMBT_DROP:
        raise RefusedError(MeterModFailedCode.OFPMMFC_BAD_BAND)
    if band.rate.value == 0:
        raise RefusedError(MeterModFailedCode.OFPMMFC_BAD_RATE)
    burst = band.burst_size.value if flags & MeterFlags.OFPMF_BURST else 0
    return MeterEntry(flags, band.rate.value, burst, now_s)

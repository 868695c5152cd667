"""Data rates of InfiniBand links: after encoding and forward error correction (b/s)."""

from __future__ import annotations

from fractions import Fraction

from daqloom.scenario.quantities import Dimension

# One lane: signalling rate × encoding (8b/10b, 64b/66b) or what is left of FEC's frames
# (256/257 × 514/544 of HDR's 53.125 and NDR's 106.25 Gb/s is 50 and 100 Gb/s).
LANE_BPS: dict[str, Fraction] = {
    "SDR": Fraction(2_500_000_000 * 8, 10),
    "DDR": Fraction(5_000_000_000 * 8, 10),
    "QDR": Fraction(10_000_000_000 * 8, 10),
    "FDR10": Fraction(10_312_500_000 * 64, 66),
    "FDR": Fraction(14_062_500_000 * 64, 66),
    "EDR": Fraction(25_781_250_000 * 64, 66),
    "HDR": Fraction(50_000_000_000),
    "NDR": Fraction(100_000_000_000),
    "XDR": Fraction(200_000_000_000),
}
WIDTHS = ("1", "2", "4", "8", "12")

NEWER_THAN_KNOWN = "HDR"
"""What a speed is taken for that the tool had no name for: the tools that lack one stop at EDR."""


def data_rate(width: str, speed: str) -> int | None:
    """The rate (b/s) of a link such as 4x EDR; None where width or speed has no known name."""
    if width not in WIDTHS or speed not in LANE_BPS:
        return None
    return int(int(width) * LANE_BPS[speed])


def port_rate(value: object, dimension: Dimension) -> object:
    """A speed's name, such as EDR, as the rate of a port of four lanes; all else as it is."""
    rate = data_rate("4", value) if isinstance(value, str) else None
    return value if rate is None else dimension.format(rate)

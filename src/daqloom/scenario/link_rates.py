"""Data rates of InfiniBand links (b/s), without encoding and forward error correction."""

from fractions import Fraction
from typing import Annotated

from daqloom.scenario.quantities import RATE, Dimension, reading

# Rate of one lane: signalling rate × encoding (8b/10b, 64b/66b), or × payload share of FEC frames
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
"""Speed assumed if an InfiniBand tool reports an unknown speed: old tools know speeds up to EDR."""


def data_rate(width: str, speed: str) -> int | None:
    """Return the rate (b/s) of a link such as 4x EDR; None if width or speed is unknown."""
    if width not in WIDTHS or speed not in LANE_BPS:
        return None
    return int(int(width) * LANE_BPS[speed])


class _PortRate(Dimension):
    """A rate, or the name of a speed such as EDR for a port of four lanes."""

    @property
    def _expected(self) -> str:
        return f"{super()._expected}, or by the name of a speed: {', '.join(LANE_BPS)}"

    @property
    def form(self) -> str:
        return f"{'|'.join(LANE_BPS)}|{super().form}"

    def parse(self, text: object) -> int | float:
        rate = data_rate("4", text) if isinstance(text, str) else None
        return super().parse(text) if rate is None else rate


PORT_RATE = _PortRate(**vars(RATE))
PortRate = Annotated[int, *reading(PORT_RATE)]
"""Rate of a port (b/s); 0: the rate that each imported cable has."""

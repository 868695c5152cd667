"""Colours and number formats of all figures.

The colours are from Okabe and Ito ("Color Universal Design", 2008); they are distinct for all kinds
of colour vision.
"""

from __future__ import annotations

from collections.abc import Iterable

from daqloom.base import lazy

with lazy.imports():
    import matplotlib as mpl
    from matplotlib import colors, ticker

BLACK = "#1a1a1a"
GREY = "#6b6b6b"
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#E69F00"

PALE = "#f4f4f4"
"""Background of a part of a panel."""
NOTHING = "–"
"""Table cell that has no value."""


def sequence(count: int, colours: str = "viridis", top: float = 0.84) -> list[str]:
    """Return evenly spaced colours of a matplotlib map, from 0 to `top`; viridis also differs in
    brightness."""
    places = (top * place / (count - 1) if count > 1 else 0.4 for place in range(count))
    return [colors.to_hex(mpl.colormaps[colours](place)) for place in places]


def text_colour(colour: str | tuple[float, float, float]) -> str:
    """Return the text colour with most contrast on a background colour: black or white."""
    red, green, blue = (channel**2.2 for channel in colors.to_rgb(colour))
    return BLACK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.24 else "white"


def pale(colour: str) -> str:
    """Return a pale fill colour for a surface with an edge of `colour`."""
    red, green, blue = (0.82 + 0.18 * part for part in colors.to_rgb(colour))
    return colors.to_hex((red, green, blue))


def plain(value: float) -> str:
    """Return a number as axes show it: `1,000`, `0.25`."""
    return f"{value:,.6g}"


def translucent(colour: str, opacity: float) -> str:
    """Return the CSS colour: `rgba(0, 114, 178, 0.2)`."""
    red, green, blue = (round(255 * part) for part in colors.to_rgb(colour))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def round_steps(low: float, high: float, most: int = 6, *, log: bool = False) -> list[float]:
    """Return a few round numbers in a range; powers of ten on a logarithmic axis over decades."""
    if log and high > 5 * low:
        subs = [1.0] if high > 200 * low else [1.0, 2.0, 5.0]
        locator: ticker.Locator = ticker.LogLocator(subs=subs, numticks=9)
    else:
        locator = ticker.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
    return [float(each) for each in locator.tick_values(low, high) if low <= each <= high]


def seconds(value: float) -> str:
    """Return a duration with three digits, such as `1.71 ms`, `203 ms` or `4.20 s`."""
    scale, unit = _unit_of_seconds(value)
    return f"{_three_digits(value / scale)} {unit}"


def round_seconds(value: float) -> str:
    """Return a duration for an axis, such as `1 ms`, `100 ms` or `10 s`."""
    scale, unit = _unit_of_seconds(value)
    return f"{value / scale:g} {unit}"


def megabytes(value: float) -> str:
    """Return a size in MB (10^6 B) with three digits."""
    return f"{_three_digits(value / 1e6)} MB"


def hertz(value: float) -> str:
    """Return an event rate: `12 kHz`, `5 Hz`."""
    return f"{value / 1e3:g} kHz" if value >= 1e3 else f"{value:g} Hz"


def _unit_of_seconds(value: float) -> tuple[float, str]:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale * (1 - 1e-9):
            return scale, unit
    return 1e-9, "ns"


def _three_digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def binary(unit: str, values: Iterable[float]) -> tuple[float, str] | None:
    """Return the largest binary unit that divides all sizes, such as `(1024, "KiB")`. Return None
    if all sizes are multiples of 1 kB, or if no unit divides them."""
    sizes = list(values)
    if unit != "B" or not any(sizes) or all(size % 1000 == 0 for size in sizes):
        return None
    powers = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next((each for each in powers if all(size % each[0] == 0 for size in sizes)), None)


def prefix(unit: str, largest: float) -> tuple[float, str]:
    """Return divisor and unit for numbers up to `largest`, such as `(1e6, "MB")`. Shares (unit "1")
    become per cent and bit/s become Gb/s; counts keep their unit."""
    if unit == "1":
        return 0.01, "%"
    unit = "b/s" if unit == "bit/s" else unit
    if unit not in ("s", "B", "Hz", "b/s"):
        return 1.0, unit
    if unit == "s":
        return _unit_of_seconds(abs(largest)) if largest else (1.0, "s")
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(largest) >= scale * (1 - 1e-9):
            return scale, prefix + unit
    return 1.0, unit

"""One look for every figure: colours, typography, units.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any
kind of colour vision tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable

BLACK = "#1a1a1a"
GREY = "#6b6b6b"
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#E69F00"

PALE = "#f4f4f4"
"""Ground of a part of a panel."""


def sequence(count: int, colours: str = "viridis", end: float = 0.84) -> list[str]:
    """Evenly spaced colours of one of matplotlib's maps, from 0 to `end`; those of viridis differ
    in grey as well."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    places = (end * place / (count - 1) if count > 1 else 0.4 for place in range(count))
    return [to_hex(colormaps[colours](place)) for place in places]


def on(colour: str) -> str:
    """The colour of text that is read best on another: black or white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (channel**2.2 for channel in to_rgb(colour))
    return BLACK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.24 else "white"


def pale(colour: str) -> str:
    """The colour of a surface whose edge has the given one."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (0.82 + 0.18 * part for part in to_rgb(colour))
    return to_hex((red, green, blue))


def plain(value: float) -> str:
    """A number as an axis has it: `1,000`, `0.25`."""
    return f"{value:,.6g}"


def translucent(colour: str, opacity: float) -> str:
    """The colour as a page has it: `rgba(0, 114, 178, 0.2)`."""
    from matplotlib.colors import to_rgb

    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def round_steps(low: float, high: float, most: int = 6, *, log: bool = False) -> list[float]:
    """A few round numbers between two; on a logarithmic axis of decades their powers."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    decades = LogLocator(subs=[1.0] if high > 200 * low else [1.0, 2.0, 5.0], numticks=9)
    locator = decades if log and high > 5 * low else MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
    return [float(each) for each in locator.tick_values(low, high) if low <= each <= high]


def seconds(value: float) -> str:
    """A duration as people say it, three digits: `1.71 ms`, `203 ms`, `4.20 s`."""
    scale, unit = _unit_of_seconds(value)
    return f"{_three_digits(value / scale)} {unit}"


def round_seconds(value: float) -> str:
    """A duration on an axis: `1 ms`, `100 ms`, `10 s`."""
    scale, unit = _unit_of_seconds(value)
    return f"{value / scale:g} {unit}"


def megabytes(value: float) -> str:
    """Bytes in MB (10^6) with three digits."""
    return f"{_three_digits(value / 1e6)} MB"


def hertz(value: float) -> str:
    """A rate of events, as given: `12 kHz`, `5 Hz`."""
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
    """Divisor and unit, `(1024, "KiB")`, of sizes that are round in it and not in kB; else None."""
    sizes = list(values)
    if unit != "B" or not any(sizes) or all(size % 1000 == 0 for size in sizes):
        return None
    powers = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next((each for each in powers if all(size % each[0] == 0 for size in sizes)), None)


def prefixed(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and unit in which numbers up to `largest` read well: `(1e6, "MB")`. Shares ("1")
    become per cent, bit/s Gb/s; counts keep their unit."""
    if unit == "1":
        return 0.01, "%"
    unit = "b/s" if unit == "bit/s" else unit
    if unit not in ("s", "B", "Hz", "b/s"):
        return 1.0, unit
    if unit == "s":
        scale, name = _unit_of_seconds(abs(largest)) if largest else (1.0, "s")
        return scale, name
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(largest) >= scale * (1 - 1e-9):
            return scale, prefix + unit
    return 1.0, unit

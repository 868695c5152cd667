"""One look for every figure: colours, typography, units.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any
kind of colour vision tell apart.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from daqloom.output import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

BLACK = "#1a1a1a"
GREY = "#6b6b6b"
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#E69F00"

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": BLACK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "lines.linewidth": 1.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def save(figure: Figure, path: Path, dpi: int = 130) -> None:
    """Writes png, pdf or svg. Raises OutputError."""
    with written_whole(path) as scratch:
        figure.savefig(scratch, dpi=dpi)


def png(figure: Figure, dpi: int) -> bytes:
    """Return the figure as a page embeds it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    return stream.getvalue()


def in_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Makes all that a function draws look like every figure."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **named: P.kwargs) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(RC):
            return draw(*args, **named)

    return drawn


def quiet_grid(axes: Axes) -> None:
    """Grid lines that one sees only when looking for them."""
    axes.grid(color="#ececec", linewidth=0.7)
    axes.set_axisbelow(True)


def on(colour: str) -> str:
    """The colour of text that is read best on another: black or white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (channel**2.2 for channel in to_rgb(colour))
    return BLACK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.24 else "white"


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

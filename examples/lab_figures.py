"""Draw figs. 3 to 6 of the ATLAS study by formula, simulation and laboratory, in one picture.

Run it as `python examples/lab_figures.py lab-figures.png`. The points are those of the tables of
docs/explanation/three-methods.md, scaled from `lab-rack` to the study's rack: links of 20 Mb/s
stand for 25 Gb/s, 120 kB for 5 MB, 4 builders for 32. The formula is computed.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import daqloom

PAGE = Path(__file__).parents[1] / "docs/explanation/three-methods.md"
BYTES = 5e6 / 120e3
RATE = 25e9 / 20e6 / BYTES * 32 / 4

Row = tuple[float, list[float]]


def table(head: str) -> list[Row]:
    """Rows of the table of that page whose head begins so, each a first number and the others."""
    _, _, behind = PAGE.read_text().partition(head)
    found = []
    for line in behind.splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *others = [float(cell.split()[0]) for cell in line.strip("| ").split("|")]
        found.append((first, others))
    return found


def formula(kilobytes: float) -> float:
    """What one event needs in the port of its builder (MB of the study)."""
    alone = {"builders.units": 1, "event.rate": "1 Hz", "event.arrivals": "deterministic"}
    rack = daqloom.load("lab-rack", alone | {"event.size": f"{kilobytes:g} kB"})
    peak = rack.analyse().metric("buffer_peak_bytes.tor")
    assert isinstance(peak, float)
    return peak * BYTES / 1e6


def megabytes(kilobytes: float) -> float:
    """That much in the study."""
    return kilobytes * 1e3 * BYTES / 1e6


def highest_rate(axes: Axes, rows: list[Row]) -> None:
    """Fig. 3."""
    sizes = [megabytes(size) for size, _ in rows]
    for column, label, style in (
        (0, "formula", "k-"),
        (1, "simulation", "s"),
        (2, "laboratory", "o"),
    ):
        axes.plot(sizes, [row[column] * RATE / 1e3 for _, row in rows], style, label=label)
    axes.set(title="fig. 3: highest rate", xlabel="event size (MB)", ylabel="event rate (kHz)")


def over_size(axes: Axes, rows: list[Row]) -> None:
    """Fig. 4: all rates, as the buffer of one port does not depend on them."""
    sizes = [megabytes(size) for size, _ in rows]
    axes.plot(sizes, [formula(size) for size, _ in rows], "k-", label="formula")
    axes.plot(sizes, [megabytes(row[0]) for _, row in rows], "s", label="simulation")
    means = [sum(row[1:]) / len(row[1:]) for _, row in rows]
    around = (
        [megabytes(mean - min(row[1:])) for mean, (_, row) in zip(means, rows, strict=True)],
        [megabytes(max(row[1:]) - mean) for mean, (_, row) in zip(means, rows, strict=True)],
    )
    axes.errorbar(
        sizes, list(map(megabytes, means)), around, fmt="o", capsize=3, label="laboratory"
    )
    axes.set(
        title="fig. 4: smallest buffer of a port", xlabel="event size (MB)", ylabel="buffer (MB)"
    )


def over_rate(axes: Axes, rows: list[Row], rates: list[float]) -> None:
    """Fig. 5: three sizes."""
    for size, (simulated, *measured) in rows[1::2]:
        axes.axhline(formula(size), color="k")
        axes.plot(rates, [megabytes(simulated)] * len(rates), "s", color="C0")
        axes.plot(rates, [megabytes(each) for each in measured], "o", color="C1")
    axes.set(
        title="fig. 5: smallest buffer of a port", xlabel="event rate (kHz)", ylabel="buffer (MB)"
    )


def surface(axes: Axes, rows: list[Row], rates: list[float]) -> None:
    """Fig. 6: laboratory over the formula, at each rate and size."""
    sizes = [megabytes(size) for size, _ in rows]
    over = [[megabytes(each) / formula(size) for each in row[1:]] for size, row in rows]
    drawn = axes.pcolormesh(rates, sizes, over, vmin=0.9, vmax=1.1, cmap="RdBu_r")
    for size, row in zip(sizes, over, strict=True):
        for rate, each in zip(rates, row, strict=True):
            axes.text(rate, size, f"{each:.2f}", ha="center", va="center", fontsize=7)
    axes.figure.colorbar(drawn, ax=axes, label="laboratory / formula")
    axes.set(title="fig. 6: over the plane", xlabel="event rate (kHz)", ylabel="event size (MB)")


def main() -> None:
    """Draw all four."""
    figure, all_axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    rows = table("| event | simulated | measured at 15 Hz")
    rates = [hertz * RATE / 1e3 for hertz in (15, 20, 25, 30, 38, 45)]
    highest_rate(all_axes[0, 0], table("| event | bound of the links"))
    over_size(all_axes[0, 1], rows)
    over_rate(all_axes[1, 0], rows, rates)
    surface(all_axes[1, 1], rows, rates)
    all_axes[0, 0].legend()
    figure.savefig(sys.argv[1], dpi=150)


if __name__ == "__main__":
    main()

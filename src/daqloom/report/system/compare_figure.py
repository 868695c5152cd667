"""The two occupancies of a comparison on one time axis."""

from pathlib import Path

from daqloom.report import style
from daqloom.report.system.panels import most_held
from daqloom.study.compare import Comparison


def write(path: Path, title: str, found: Comparison) -> None:
    """Writes png, pdf or svg. Raises OutputError."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        axes = figure.add_subplot()
        instants, held = most_held(found.simulated)
        axes.plot(instants * 1e3, held / 1e6, color=style.BLUE, lw=2.2, label="simulation")
        axes.plot(
            found.times_s * 1e3,
            found.formula_bytes / 1e6,
            color=style.BLACK,
            lw=1.0,
            label="formula, the same events",
        )
        peak = found.regular_peak / 1e6
        axes.axhline(
            peak, color=style.GREY, lw=0.9, ls=(0, (6, 4)), label="formula, regular events: peak"
        )
        axes.set(xlabel="time (ms)", ylabel="buffer occupancy (MB)", ylim=(0, None))
        axes.set_xlim(0, float(instants[-1]) * 1e3 if instants.size else None)
        axes.set_title(title)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False)
        style.quiet_grid(axes)
        style.save(figure, path)

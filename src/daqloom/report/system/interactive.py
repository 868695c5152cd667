"""The panels that interactive figures are made of: those of `panels`, to zoom and to hover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daqloom.report import style
from daqloom.report.system import windows
from daqloom.report.system.buffer_question import Regular, Run, Switch
from daqloom.report.system.curves import most_held, share_slower, stacked_events
from daqloom.report.system.panels import LAYERS
from daqloom.report.system.windows import RTO_S

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LAYOUT: dict[str, Any] = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 14, "color": style.BLACK},
    "margin": {"l": 70, "r": 20, "t": 20, "b": 55},
    "hovermode": "x unified",
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
}


def triangles(regular: Regular, limit: Switch | None) -> Figure:
    """Periodic events, one triangle each, stacked; the simulated switch; the closed form's peak."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure(layout=_LAYOUT)
    times, stack = stacked_events(regular.event, regular.arrivals_s, regular.until_s)
    for index, height in enumerate(stack):
        figure.add_trace(
            Scatter(
                x=_thin(times * 1e3),
                y=_thin(height / 1e6),
                fill="tonexty" if index else "tozeroy",
                fillcolor=LAYERS[index % 2],
                line={"width": 0, "color": LAYERS[0]},
                mode="lines",
                hoverinfo="skip",
                name="one event",
                showlegend=index == 0,
            )
        )
    if regular.result is not None:
        instants, held = most_held(regular.result)
        figure.add_trace(
            Scatter(
                x=_thin(instants * 1e3),
                y=_thin(held / 1e6),
                name="simulation, packet by packet",
                line={"color": "rgba(0, 114, 178, 0.5)", "width": 6},
                hovertemplate="%{y:.2f} MB",
            )
        )
    figure.add_trace(
        Scatter(
            x=_thin(times * 1e3),
            y=_thin(stack[-1] / 1e6),
            name="formula: their sum",
            line={"color": style.BLACK, "width": 1.5},
            hovertemplate="%{y:.2f} MB",
        )
    )
    figure.add_hline(
        regular.peak_bytes / 1e6,
        line={"dash": "dash", "width": 1},
        annotation_text=f"exact peak: {style.megabytes(regular.peak_bytes)}",
    )
    _limit(figure, limit)
    x, y = windows.triangles(regular)
    figure.update_xaxes(title="time (ms)", range=[1e3 * end for end in x])
    figure.update_yaxes(title="held by the switch (MB)", range=[end / 1e6 for end in y])
    return figure


def whole_run(runs: Sequence[Run], limit: Switch | None) -> Figure:
    """Most bytes held, bin by bin."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure(layout=_LAYOUT)
    for run in runs:
        times, held = most_held(run.result)
        figure.add_trace(
            Scatter(
                x=_thin(times),
                y=_thin(held / 1e6),
                name=run.switch.label,
                line={"color": run.switch.colour, "width": _width(run, runs, 1), "shape": "hv"},
                opacity=_opacity(run, runs),
                hovertemplate="%{y:.2f} MB",
            )
        )
    _limit(figure, limit)
    x, y = windows.whole_run(runs)
    figure.update_xaxes(title="time (s)", range=list(x))
    figure.update_yaxes(title="held by the switch (MB)", range=[end / 1e6 for end in y])
    return figure


def latency(runs: Sequence[Run]) -> Figure:
    """Share of the events that took longer, on two logarithmic axes."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure(layout=_LAYOUT | {"hovermode": "closest"})
    for run in runs:
        taken, slower = share_slower(run.result)
        shown = slower > 0
        figure.add_trace(
            Scatter(
                x=_thin(taken[shown] * 1e3),
                y=_thin(slower[shown] * 100),
                name=run.switch.label,
                line={"color": run.switch.colour, "width": _width(run, runs, 2.5)},
                opacity=_opacity(run, runs),
                hovertemplate="%{y:.3g} % longer than %{x:.4g} ms",
            )
        )
    figure.add_vline(RTO_S * 1e3, line={"dash": "dash", "width": 1, "color": style.GREY})
    figure.add_annotation(
        text="smallest TCP RTO, 200 ms",
        x=math.log10(RTO_S * 1e3),  # plotly places annotations on the axis' logarithm
        y=0.02,
        yref="paper",
        xanchor="right",
        showarrow=False,
        font={"color": style.GREY},
    )
    x, y = windows.latency(runs)
    figure.update_xaxes(
        title="event-building latency (ms)",
        type="log",
        dtick=1,
        range=[math.log10(1e3 * end) for end in x],
    )
    figure.update_yaxes(
        title="share of events with a longer latency (%)",
        type="log",
        dtick=1,
        range=[math.log10(100 * end) for end in y],
    )
    return figure


def _limit(figure: Figure, switch: Switch | None) -> None:
    if switch is None or switch.buffer_bytes is None:
        return
    figure.add_hline(
        switch.buffer_bytes / 1e6,
        line={"dash": "dot", "color": switch.colour},
        annotation_text=f"buffer of the {switch.label}: {switch.buffer_bytes / 1e6:g} MB",
        annotation_font_color=switch.colour,
        annotation_bgcolor="rgba(255, 255, 255, 0.75)",
    )


def _width(run: Run, runs: Sequence[Run], usual: float) -> float:
    """The first of several curves is broad and pale: others may lie on it."""
    return usual + 3 if run is runs[0] and len(runs) > 1 else usual


def _opacity(run: Run, runs: Sequence[Run]) -> float:
    return 0.4 if run is runs[0] and len(runs) > 1 else 1.0


def _thin(values: Any) -> Any:
    """Seven digits are more than a screen shows, and half of the file."""
    return values.astype("float32")

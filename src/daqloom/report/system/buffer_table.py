"""Table on a top-of-rack switch's buffer: closed forms and simulated switches side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daqloom.base import lazy
from daqloom.base.words import plural
from daqloom.report import style
from daqloom.report.style import NOTHING
from daqloom.report.system.buffer_question import BufferQuestion, Run, Switch
from daqloom.results.metrics import label
from daqloom.results.result import Result

with lazy.imports():
    from rich import box
    from rich import table as rich_table


def head(question: BufferQuestion) -> list[str]:
    """Return the column names: empty, "formula", one per simulated switch."""
    return ["", "formula", *(_column(run.switch) for run in question.runs)]


def rows(question: BufferQuestion) -> list[list[str]]:
    """Return rows of text: name, formula and a cell for each simulation. Names are short for a
    terminal of 80 columns; a dash stands for an unknown number."""
    analysis, runs = question.analysis, question.runs
    published = analysis.analysis["published"]["value_bytes"]
    worst = analysis.analysis["back_to_back"]["value_bytes"]
    bound = analysis.metric("event_rate_bound_hz")
    least = analysis.metric("collection_latency_s.min")

    def each(path: str, form: Callable[[float], str]) -> list[str]:
        values = [run.result.metric(path) for run in runs]
        return [NOTHING if value is None else form(value) for value in values]

    latency = "collection_latency_s"
    peak = style.megabytes(question.regular.peak_bytes)
    event_rate = f"≤ {_kilohertz(bound)}" if bound else NOTHING
    mean = f"≥ {style.seconds(least)}" if least else NOTHING
    return [
        ["switch buffer", NOTHING, *map(_capacity, runs)],
        ["peak occupancy", peak, *each("buffer_peak_bytes.tor", style.megabytes)],
        [" published formula", style.megabytes(published), *[NOTHING] * len(runs)],
        [" for any arrivals", style.megabytes(worst), *[NOTHING] * len(runs)],
        [label("event_rate_hz"), event_rate, *each("event_rate_hz", _kilohertz)],
        [label("packets_dropped"), NOTHING, *each("packets_dropped", "{:,.0f}".format)],
        ["TCP RTO timeouts", NOTHING, *each("retransmission_timeouts", "{:,.0f}".format)],
        ["latency, mean", mean, *each(f"{latency}.mean", style.seconds)],
        ["latency, 99 %", NOTHING, *each(f"{latency}.p99", style.seconds)],
        ["latency, slowest", NOTHING, *each(f"{latency}.max", style.seconds)],
        ["relative cost", NOTHING, *(f"{c:g}" if (c := r.switch.cost) else NOTHING for r in runs)],
        ["hops per CPU s", NOTHING, *(_hop_rate(run.result) for run in runs)],
    ]


def table(question: BufferQuestion) -> rich_table.Table:
    """Return the table for printing on a terminal."""
    shown = rich_table.Table(
        title=question.title,
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for index, name in enumerate(head(question)):
        shown.add_column(name, justify="right" if index else "left")
    for row in rows(question):
        shown.add_row(*row)
    return shown


def verdict(question: BufferQuestion) -> Iterator[str]:
    """Yield sentences that say what the table's numbers mean for each switch."""
    exact = question.regular.peak_bytes
    peak = question.runs[0].result.metric("buffer_peak_bytes.tor")
    if peak is not None:
        yield (
            f"Regular events need {style.megabytes(exact)} of buffer; random events arrive closer "
            f"together at times and need {style.megabytes(peak)}."
        )
    for run in question.runs[1:]:
        switch, result = run.switch, run.result
        rate = result.metric("event_rate_hz")
        if rate is None:
            continue
        outcome = f"builds {_kilohertz(rate)} of {_kilohertz(question.scenario.event.rate)}"
        drops = result.metric("packets_dropped")
        timeouts = result.metric("retransmission_timeouts")
        if drops:
            outcome += f": {drops:,} packets were dropped"
            if timeouts:
                outcome += f", with {plural(int(timeouts), 'TCP retransmission timeout')}"
            elif timeouts == 0:
                outcome += ", without a TCP retransmission timeout"
        elif drops == 0:
            outcome += " without packet loss"
        slow = result.metric("collection_latency_s.p99")
        if slow is not None:
            outcome += f"; the 99th percentile of the latency is {style.seconds(slow)}"
        yield f"The {switch.label} (cost {switch.cost:g}) {outcome}."
    if any(run.switch.transport for run in question.runs):
        yield (
            "No RACK: TCP without the fast loss detection of RFC 8985 (RACK and tail-loss "
            "probes), so that retransmission often waits for a timeout of 200 ms."
        )


def _column(switch: Switch) -> str:
    """Return a narrow column heading: text after a comma starts a new line."""
    return "simulated\n" + switch.label.replace(", ", "\n")


def _capacity(run: Run) -> str:
    size = run.switch.buffer_bytes
    if size is None:
        return "unlimited"
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


def _hop_rate(result: Result) -> str:
    rate = result.engine.get("packet_hops_per_cpu_s")
    if rate is None:
        hops, cpu_s = result.engine.get("packet_hops"), result.engine.get("cpu_s")
        rate = hops / cpu_s if hops and cpu_s else None
    return NOTHING if rate is None else f"{rate / 1e6:.1f} M"


def _kilohertz(value: float) -> str:
    return f"{value / 1e3:.1f} kHz"

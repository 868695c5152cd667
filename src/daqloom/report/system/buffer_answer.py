"""Answer of the demonstration in three sentences: the buffer, the real event builder, the next
step."""

from __future__ import annotations

from daqloom.base.words import plural
from daqloom.deployment.scenarios import override
from daqloom.report import style
from daqloom.report.system.buffer_question import DEEP, SHALLOW, BufferQuestion
from daqloom.results.metrics import for_people, with_unit
from daqloom.results.result import Result
from daqloom.study.methods import methods

STEP_BYTES = 100_000
"""Event sizes of the next step are multiples of this."""


def answer(question: BufferQuestion) -> list[str]:
    """Return the sentences. Without a measurement, the second one names the command for it."""
    return [_need(question), _built(question), _next(question)]


def _need(question: BufferQuestion) -> str:
    event = question.scenario.event
    peak = question.runs[0].result.metric("buffer_peak_bytes.tor") or 0.0
    regular = style.megabytes(question.regular.peak_bytes)
    shallow, deep = (_outcome(question, model) for model in (SHALLOW.model, DEEP.model))
    return (
        f"For events of {event.size / 1e6:g} MB at {style.hertz(event.rate)} the top-of-rack "
        f"switch needs {style.megabytes(peak)} of buffer, {regular} if events came regularly: "
        f"{shallow}, {deep}."
    )


def _outcome(question: BufferQuestion, model: str) -> str:
    """Return what the first simulation with a switch gave, in words."""
    run = next(each for each in question.runs if each.switch.model == model)
    switch, drops = run.switch, run.result.metric("packets_dropped")
    size = with_unit(switch.buffer_bytes or 0, "B")
    if drops is None:
        return f"the {switch.label} has {size}"
    lost = f"drops {plural(int(drops), 'packet')}" if drops else "drops nothing"
    return f"the {switch.label} with {size} (cost {switch.cost:g}) {lost}"


def _built(question: BufferQuestion) -> str:
    found = question.measured
    if isinstance(found, str):
        return f"The real event builder has not run ({found}): try `daqloom measure laptop`."
    checked, wrong = (found.metric(f"events_{name}") for name in ("checked", "wrong"))
    units, cores = (int(found.engine[name]) for name in ("units", "cores"))
    return (
        f"The real event builder, {plural(units, 'process', 'processes')} on "
        f"{plural(cores, 'core')} of this machine, built events at "
        f"{_amount(found, 'event_rate_hz')}, {_amount(found, 'throughput_bps')}; it checked every "
        f"byte of {int(checked or 0):,} events, of which {int(wrong or 0):,} were wrong."
    )


def _amount(result: Result, metric: str) -> str:
    return for_people(metric, float(f"{result.metric(metric) or 0.0:.3g}"))


def _next(question: BufferQuestion) -> str:
    buffer_bytes = SHALLOW.buffer_bytes or 0
    event = f"{_largest_fit(question, buffer_bytes) / 1e6:g} MB"
    return (
        f"Next, try the events that fit: by formula an ideal buffer of "
        f"{with_unit(buffer_bytes, 'B')} holds any arrivals of events up to {event}; "
        f"`daqloom simulate {question.scenario.name} --set network.switch.tor.model="
        f'{SHALLOW.model} --set event.size="{event}"` shows what cells and thresholds of the '
        f"{SHALLOW.label} leave of it."
    )


def _largest_fit(question: BufferQuestion, buffer_bytes: int) -> int:
    """Return the largest event (B) whose closed form for any arrivals fits into a buffer."""
    scenario = question.scenario

    def peak_of(size: int) -> float:
        result = methods.analyse(override(scenario, {"event.size": f"{size} B"}))
        return float(result.analysis["back_to_back"]["value_bytes"])

    share = buffer_bytes / float(question.analysis.analysis["back_to_back"]["value_bytes"])
    size: int = max(1, round(share * scenario.event.size / STEP_BYTES)) * STEP_BYTES
    while size > STEP_BYTES and peak_of(size) > buffer_bytes:
        size -= STEP_BYTES
    return size

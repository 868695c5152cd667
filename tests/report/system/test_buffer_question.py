"""Figures and tables on the size of a buffer, made from results with known numbers."""

import base64
import gzip
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daqloom.analyse.triangles import occupancy
from daqloom.deployment.scenarios import load, override
from daqloom.report import matplotlib_renderer
from daqloom.report.matplotlib_renderer import highest
from daqloom.report.system import buffer_answer, buffer_figure, demo, result_figure
from daqloom.report.system import buffer_table as comparison
from daqloom.report.system.buffer_question import (
    DEEP,
    SHALLOW,
    SHALLOW_PLAIN_TCP,
    UNLIMITED,
    BufferQuestion,
    Run,
    Switch,
    regular_events,
    switch_of,
)
from daqloom.report.system.panels import most_held, share_slower, stacked_events
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods

ATLAS = load("atlas-lab")


def simulated(scenario: Scenario = ATLAS, peak: float = 70e6, **metrics: Any) -> Result:
    """Result of a simulation with a sawtooth for a buffer and events of 2 to 4 ms."""
    bins = np.arange(200)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        method="simulate",
        seed=1,
        metrics={"buffer_peak_bytes": {"tor": peak}, **metrics},
        engine={"packet_hops": 1_000_000, "cpu_s": 0.04},
        series={
            "tor_occupancy": {
                "time_s": bins * scenario.run.duration / bins.size,
                "max_bytes": peak * (bins % 10) / 9,
            },
            "collection_latency": {
                "lowest_s": [1e-3, 2e-3, 3e-3],
                "width_s": [1e-3, 1e-3, 1e-3],
                "count": [0, 3, 1],
            },
        },
    )


@pytest.fixture
def question() -> BufferQuestion:
    return BufferQuestion(
        scenario=ATLAS,
        analysis=methods.analyse(ATLAS),
        regular=regular_events(ATLAS, 1e-3, simulated()),
        runs=(
            Run(UNLIMITED, simulated(event_rate_hz=12e3, packets_dropped=0)),
            Run(
                SHALLOW,
                simulated(event_rate_hz=1800.0, packets_dropped=1234, retransmission_timeouts=56),
            ),
            Run(SHALLOW_PLAIN_TCP, simulated(event_rate_hz=900.0)),
            Run(DEEP, simulated(event_rate_hz=11_990.0, packets_dropped=0)),
        ),
    )


def test_thinning_keeps_every_maximum_and_nothing_of_a_run_without_events() -> None:
    empty = Result(scenario="x", scenario_hash="0", method="simulate", metrics={})
    assert share_slower(empty)[0].size == 0
    assert most_held(empty)[0].size == 0
    held = np.zeros(1001)
    held[[3, 999]] = 7, 9
    times, most = highest(np.arange(1001.0), held)
    assert times.tolist() == list(range(0, 1001, 3))
    assert (most[1], most[333], most.sum()) == (7, 9, 16)
    assert highest(np.empty(0), np.empty(0))[1].size == 0
    latency, slower = share_slower(simulated())
    assert latency == pytest.approx([2e-3, 3e-3, 4e-3])
    assert slower == pytest.approx([1.0, 0.25, 0.0])


def built() -> Result:
    """Result of the real event builder."""
    counts = {"events_checked": 1_234_567, "events_wrong": 0}
    return Result(
        scenario="laptop",
        scenario_hash="0",
        method="measure",
        metrics={"event_rate_hz": 517e3, "throughput_bps": 16.5e9, **counts},
        engine={"units": 4, "cores": 2},
    )


def test_the_answer_is_three_sentences_on_need_measurement_and_next_step(
    question: BufferQuestion,
) -> None:
    needed, real, step = buffer_answer.answer(replace(question, measured=built()))
    assert "of 5 MB at 12 kHz the top-of-rack switch needs 70.0 MB of buffer, 52.7 MB" in needed
    assert "QFX5120-48Y with 32 MB (cost 1) drops 1,234 packets" in needed
    assert "ACX7100-48L with 8 GB (cost 2.5) drops nothing." in needed
    assert real == (
        "The real event builder, 4 processes on 2 cores of this machine, built events at 517 kHz, "
        "16.5 Gb/s; it checked every byte of 1,234,567 events, of which 0 were wrong."
    )
    [size] = re.findall(r'event\.size="(.*? MB)"', step)

    def worst(text: str) -> float:
        found = methods.analyse(override(ATLAS, {"event.size": text}))
        return float(found.analysis["back_to_back"]["value_bytes"])

    larger = f"{float(size.split()[0]) + 0.1:g} MB"
    assert worst(size) <= 32e6 < worst(larger)
    page = html.unescape(buffer_figure.render(replace(question, measured=built())))
    page = re.sub("</?code>", "`", page)
    places = [page.index(each) for each in (needed, real, step)]
    assert max(places) < page.index('class="figure"')


def test_without_a_measurement_the_answer_names_the_reason_and_the_command(
    question: BufferQuestion,
) -> None:
    refused = replace(question, measured="no memory is left")
    real = buffer_answer.answer(refused)[1]
    assert "has not run (no memory is left): try `daqloom measure laptop`" in real


def test_the_stacked_events_add_up_to_the_occupancy() -> None:
    regular = regular_events(ATLAS, 2e-3)
    times, stack = stacked_events(regular.event, regular.arrivals_s, regular.until_s)
    corners, held = occupancy(regular.event, regular.arrivals_s)
    assert stack.shape == (24, times.size)  # one event each 83 µs: at 1/12, …, 24/12 ms
    assert stack[-1] == pytest.approx(np.interp(times, corners, held, left=0), abs=1)
    assert (np.diff(stack, axis=0) >= 0).all()


def test_the_table_has_both_methods_in_eighty_columns(question: BufferQuestion) -> None:
    rows = {row[0]: row[1:] for row in comparison.rows(question)}
    assert comparison.head(question)[1] == "formula"
    assert rows["switch buffer"] == ["–", "unlimited", "32 MB", "32 MB", "8 GB"]
    assert rows["peak occupancy"] == ["52.7 MB"] + ["70.0 MB"] * 4
    assert rows["event rate"] == ["≤ 18.8 kHz", "12.0 kHz", "1.8 kHz", "0.9 kHz", "12.0 kHz"]
    assert rows["packets dropped"] == ["–", "0", "1,234", "–", "0"]
    assert rows["hops per CPU s"] == ["–"] + ["25.0 M"] * 4
    assert rows["TCP RTO timeouts"] == ["–", "–", "56", "–", "–"]
    assert rows["latency, 99 %"] == ["–"] * 5
    from rich.console import Console

    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(comparison.table(question))
    assert max(len(line.rstrip()) for line in console.export_text().splitlines()) <= 80


def test_the_verdict_on_each_switch(question: BufferQuestion) -> None:
    needed, shallow, plain, deep, note = comparison.verdict(question)
    assert "52.7 MB" in needed
    assert "70.0 MB" in needed
    assert "builds 1.8 kHz of 12.0 kHz" in shallow
    assert "56 TCP retransmission timeouts" in shallow
    assert "no RACK" in plain
    assert "RFC 8985" in note
    assert "builds 12.0 kHz of 12.0 kHz without packet loss" in deep


@pytest.mark.parametrize(
    ("counted", "clause"),
    [
        ({}, "5 packets were dropped."),
        ({"retransmission_timeouts": 0}, "dropped, without a TCP retransmission timeout."),
        ({"retransmission_timeouts": 1}, "dropped, with 1 TCP retransmission timeout."),
    ],
)
def test_only_counted_timeouts_are_reported(question, counted, clause) -> None:
    run = Run(SHALLOW, simulated(event_rate_hz=1800.0, packets_dropped=5, **counted))
    sentences = list(comparison.verdict(replace(question, runs=(question.runs[0], run))))
    assert any(sentence.endswith(clause) for sentence in sentences), sentences


def test_the_figure_is_a_picture_that_a_readme_can_carry(question, tmp_path) -> None:
    matplotlib_renderer.save(buffer_figure.figure(question), tmp_path / "figure.png")
    written = (tmp_path / "figure.png").read_bytes()
    assert written.startswith(b"\x89PNG")
    assert len(written) < 300_000


def test_the_page_holds_its_script_and_names_no_other_place(question: BufferQuestion) -> None:
    from plotly.offline import get_plotlyjs

    text = buffer_figure.render(question)
    packed = re.search(r'<script id="plotly" type="text/plain">([^<]*)<', text)
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == get_plotlyjs()
    around = text.replace(packed[1], "")
    assert not re.search(r"""(src|href)=(?!"#)|https?://|import\s""", around)
    assert len(text) < 3_000_000
    figures = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    assert [len(json.loads(figure)["data"]) for figure in figures] == [12 + 2, 4, 4]


def test_the_page_shows_the_same_part_of_each_panel_as_the_picture(question) -> None:
    text = buffer_figure.render(question)
    shown = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    for plot, panel in zip(shown, buffer_figure.figure(question).panels, strict=True):
        layout = json.loads(plot)["layout"]
        for axis, name in ((panel.x, "xaxis"), (panel.y, "yaxis")):
            ends = layout[name]["range"]
            assert [10**end for end in ends] if axis.log else ends == pytest.approx(axis.ends)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "html"])
@pytest.mark.parametrize("method", ["analyse", "simulate"])
def test_a_single_result_has_a_figure(ending: str, method: str, tmp_path: Path) -> None:
    path = tmp_path / f"figure.{ending}"
    result = methods.analyse(ATLAS) if method == "analyse" else simulated()
    result_figure.write(path, ATLAS, result)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_the_limit_in_a_figure_is_the_buffer_of_the_scenario() -> None:
    shallow = override(ATLAS, {"network.switch.tor.model": "qfx5120-48y"})
    assert switch_of(shallow).buffer_bytes == SHALLOW.buffer_bytes
    assert switch_of(ATLAS).buffer_bytes is None


@pytest.mark.parametrize("switch", [SHALLOW, DEEP])
def test_the_switches_of_the_question_are_those_of_the_scenario(switch: Switch) -> None:
    tor = override(ATLAS, {"network.switch.tor.model": switch.model}).network.switch.tor
    assert (tor.buffer, tor.cost) == (switch.buffer_bytes, switch.cost)


def test_the_main_job_simulates_regular_events_and_three_switches_under_two_kinds_of_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    simulations: list[Scenario] = []

    def simulate(self: Scenario, **options: Any) -> Result:
        simulations.append(self)
        options["progress"](1.0)
        return simulated(self, event_rate_hz=12e3)

    def measure(scenario: Scenario, **options: Any) -> Result:
        assert (scenario.name, scenario.measure.duration) == ("laptop", demo.MEASURED_S)
        return built()

    monkeypatch.setattr("daqloom.study.methods.methods.simulate", simulate)
    monkeypatch.setattr("daqloom.study.methods.methods.measure", measure)
    console = Console(width=100, record=True, file=io.StringIO())
    demo.run(tmp_path / "demo", console)

    assert [each.event.arrivals for each in simulations] == ["deterministic"] + ["poisson"] * 4
    systems = {(each.network.switch.tor.model, each.transport.rack) for each in simulations[1:]}
    shallow = ("qfx5120-48y", True), ("qfx5120-48y", False)
    assert systems == {("infinite", True), *shallow, ("acx7100-48l", True)}
    assert all(each.event.size == 5_000_000 for each in simulations)
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert names == {"figure.png", "figure.html", "results.json"}
    records = json.loads((tmp_path / "demo" / "results.json").read_text())
    assert [record["method"] for record in records] == ["analyse"] + ["simulate"] * 5 + ["measure"]
    printed = console.export_text()
    assert "52.7 MB" in printed
    assert "figure.html" in printed
    assert printed.count("100% done") == 5  # no terminal, so no bars


def test_one_failing_simulation_ends_the_others(tmp_path, monkeypatch) -> None:
    from rich.console import Console

    def simulate(self: Scenario, **options: Any) -> Result:
        if self.network.switch.tor.model == "qfx5120-48y":
            raise RuntimeError("out of luck")
        while self.event.arrivals == "poisson":
            options["progress"](0.5)  # returns until the main job asks to stop
        return simulated(self)

    monkeypatch.setattr("daqloom.study.methods.methods.simulate", simulate)
    monkeypatch.setattr(demo, "cores", lambda: 2)
    with pytest.raises(RuntimeError, match="out of luck"):
        demo.run(tmp_path / "demo", Console(file=io.StringIO(), force_terminal=True))
    assert not (tmp_path / "demo").exists()

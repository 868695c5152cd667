"""The report of a study: its table, its provenance, its page, its command."""

import html
import io
import itertools
import json
import re
from types import SimpleNamespace

import matplotlib.text
import numpy as np
import pytest
import xarray

from daqloom.deployment.scenarios import load
from daqloom.report.figure import Figure, Panel
from daqloom.report.matplotlib_renderer import canvas
from daqloom.report.page import Section
from daqloom.report.study import provenance as study_provenance
from daqloom.report.study import table as study_table
from daqloom.report.study.page import StudyReport, missing_seeds
from daqloom.report.study.page import render as render_parts
from daqloom.report.study.report import findings, pictures, write_report, write_reports
from daqloom.report.study.report import sentences as report_sentences
from daqloom.report.style import NOTHING
from daqloom.study.file.kinds import operating_point
from daqloom.study.file.load import load_study
from daqloom.study.file.points import methods_of, shown_variables
from daqloom.study.methods.assumptions import Change, Effect, Effects
from daqloom.study.run.executor import InProcess
from daqloom.study.run.runner import replay, run
from daqloom.study.store.store import Store
from support.command import output, printed
from support.figures import curves
from support.study_datasets import (
    LATENCY,
    MODELS,
    PEAK,
    POINT,
    RATES,
    SIZES,
    UPLINKS,
    searched,
    study,
    with_latency,
)

DOT = Figure([Panel([], blank=True)], (2, 1))


def render(dataset, *headings, **more):
    """The page of one study, with a picture for each heading."""
    pictures = [Section(heading, ["A caption."], figure=DOT) for heading in headings]
    return render_parts([StudyReport(dataset, pictures=pictures, **more)])


def draw(sections):
    for each in sections:
        canvas(each.figure).draw_without_rendering()


# The table


def test_the_table_has_values_errors_ratio_and_cost():
    dataset = study(MODELS, SIZES)
    costs = (MODELS[0], [1.0, 2.5])
    dataset = dataset.assign_coords({"network.switch.tor.cost": costs})
    assert study_table.head(dataset) == [
        "top-of-rack switch",
        "cost",
        "event size",
        "peak occupancy of the top-of-rack switch, formula (MB)",
        "peak occupancy of the top-of-rack switch, simulation (MB)",
        "simulation ÷ formula",
    ]
    rows = list(study_table.rows(dataset))
    assert len(rows) == 6
    assert rows[0] == ["qfx5120-48y", "1", "1 MB", "10.0", "12.0 ± 1.2", "1.20"]
    assert rows[5][:3] == ["acx7100-48l", "2.5", "5 MB"]


def test_switches_have_the_cost_of_the_study_else_of_the_product() -> None:
    dataset = study(("variant", ["shallow", "deep", "ideal"], ""))
    costs = ("variant", [20.0, 2.5, np.nan])
    dataset = dataset.assign_coords({"network.switch.tor.cost": costs})
    place = study_table.head(dataset).index("cost")
    assert [row[place] for row in study_table.rows(dataset)] == ["20", "2.5", NOTHING]


def test_rows_that_are_saturated_or_drifted_carry_a_sign():
    cells = [row[1] for row in study_table.rows(study(RATES, bound_hz=9e3))]
    assert cells == ["10.0", "20.0", "30.0", "40.0 *"]
    dataset = study(RATES, methods=("simulate",))
    dataset["equilibrium"] = xarray.full_like(dataset[PEAK], "", dtype="<U10")
    dataset["equilibrium"].loc[{"event.rate": 9e3, "seed": 2}] = "drifting"
    marks = [row[1].endswith("†") for row in study_table.rows(dataset)]
    assert marks == [False, False, True, False]
    assert "† not stationary" in render(dataset)


@pytest.mark.parametrize(
    ("status", "find", "cell"),
    [
        ("below", "smallest", "500 Hz or less"),
        ("never", "smallest", "never up to 60 kHz"),
        ("above", "largest", "60 kHz or more"),
        ("never", "largest", "never from 500 Hz on"),
        ("reversed", "largest", "reversed"),
    ],
)
def test_a_point_without_a_boundary_stays_in_the_table_in_words(status, find, cell):
    dataset = searched(SIZES, seeds=2)
    dataset["boundary"].attrs["find"] = find
    dataset["boundary"].loc[{"by": "simulate", "event.size": 1e6}] = np.nan
    dataset["boundary_status"].loc[{"by": "simulate", "event.size": 1e6}] = status
    assert next(study_table.rows(dataset)) == ["1 MB", cell]


def test_a_boundary_that_some_seeds_did_not_find_is_the_mean_of_the_others():
    dataset = searched(SIZES)  # 1080, 1200, 1320 Hz for the smallest size
    dataset["boundary"].loc[{"by": "simulate", "event.size": 1e6, "seed": 3}] = 60e3
    dataset["boundary_status"].loc[{"by": "simulate", "event.size": 1e6, "seed": 3}] = "above"
    # Mean of 1.08 and 1.20 kHz, their standard deviation 0.12 / √2.
    [_, cell] = next(study_table.rows(dataset))
    assert cell == "1.140 ± 0.085 (60 kHz or more for 1 of 3 seeds)"


# Provenance


def origin(command, runs, first, last, commit="abc"):
    session = SimpleNamespace(
        command=command, host="lab", processors=2, system="Linux", python="3.11", commit=commit
    )
    return study_provenance.Origin(session, "0.1.0", runs, f"2026-01-0{first}", f"2026-01-0{last}")


def test_provenance_merges_equal_values_and_has_a_job_array_as_one_command():
    command = "daqloom study run s.toml"
    origins = [
        origin(command, 3, "1T00:00", "2T00:00"),
        origin(command, 1, "1T12:00", "3T00:00", ""),
    ]
    assert study_provenance.rows(origins) == [
        ("runs", "4 by 2 processes"),
        ("computed", "2026-01-01T00:00 to 2026-01-03T00:00"),
        ("daqloom", "0.1.0, commit abc; 0.1.0"),
        ("command", "daqloom study run s.toml (4 runs, 2026-01-01T00:00 to 2026-01-03T00:00)"),
        ("machines", "lab, 2 cores, Linux"),
        ("Python", "3.11"),
    ]
    assert study_provenance.rows([]) == []

    def of_day(command, runs, day):
        return origin(command, runs, f"{day}T00:00", f"{day}T12:00")

    array = [of_day(f"daqloom study run s.toml --part {i}/3", 10, i + 1) for i in range(3)]
    others = [of_day(f"daqloom study run other{i}.toml", 7 - i, 5) for i in range(7)]
    commands = [v for name, v in study_provenance.rows([*others, *array]) if name == "command"]
    assert commands == [
        "daqloom study run s.toml --part I/3 (30 runs, 2026-01-01T00:00 to 2026-01-03T12:00)",
        *(
            f"daqloom study run other{i}.toml ({7 - i} runs, 2026-01-05T00:00 to 2026-01-05T12:00)"
            for i in range(4)
        ),
        "and 3 more (6 runs)",
    ]


# The page and its files


def big():
    """400 points × 2 methods."""
    rates = ("event.rate", np.arange(1, 21) * 1e3, "Hz")
    sizes = ("event.size", np.arange(1, 21) * 0.5e6, "B")
    return study(rates, sizes, seeds=5, operating_point=POINT)


@pytest.fixture(scope="module")
def page():
    """Text of the big study with two figures."""
    return render(big(), "Lines", "Map")


def test_the_report_is_written_whole(tmp_path):
    dataset = study(RATES, SIZES, operating_point=POINT)
    paths = write_report(dataset, tmp_path / "report", provenance=[("machine", "lab")])
    names = itertools.product(("lines", "map", "seeds", "surface", "methods"), ("png", "pdf"))
    expected = {"report.html", "results.parquet", *map(".".join, names)}
    assert {path.name for path in paths} == expected
    assert len(paths) == len(expected)
    assert {path.name for path in (tmp_path / "report").iterdir()} == {path.name for path in paths}
    page = paths[0].read_text()
    assert paths[0].stat().st_size < 1e6
    assert 'id="plotly"' not in page
    assert "lab" in page.split("Provenance of the numbers")[-1]


@pytest.mark.process
def test_an_interactive_report_has_plots_alone_and_its_pdf_pictures_alone(tmp_path):
    dataset = study(RATES, SIZES, operating_point=POINT)
    pdf = tmp_path / "print.pdf"
    paths = write_report(dataset, tmp_path / "report", interactive=True, pdf=pdf)
    page = paths[0].read_text()
    assert page.count('id="plotly"') == 1
    assert "<img" not in page
    plots = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    types = {trace["type"] for plot in plots for trace in json.loads(plot)["data"]}
    assert "surface" in types  # in place of the map, which needs no mouse
    assert "heatmap" not in types
    assert paths[1] == pdf
    assert pdf.read_bytes().startswith(b"%PDF-")


def test_the_page_of_many_points_is_small_and_loads_nothing(page):
    assert len(page.encode()) < 2.5e6
    assert not re.search(r"<script|https?://", page)
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert page.count("data:image/svg+xml;base64,") == 2
    assert not re.search(r"@import|<link", page)
    top, details = page.split('<h2 id="details">')
    assert re.findall(r"<h2>(.*?)</h2>", top) == ["Lines"]
    headings = dict(re.findall(r'<h3 id="(.*?)">(.*?)</h3>', details))
    entries = re.findall(r'<a href="#(.*?)">(.*?)</a>', details)
    assert list(headings.values()) == ["Map", "Results"]
    assert entries == (list(headings.items()) if len(headings) > 2 else [])


def test_the_terminal_has_all_sentences_of_the_page():
    dataset = study(RATES, SIZES, bound_hz=20e3, operating_point=POINT)
    # One factor between the methods does not do it: at the lowest rate the simulation has thrice as
    # much as usual.
    dataset[PEAK][{"by": 1, "event.rate": 0}] *= 3
    concluded = findings(dataset)
    printed = " ".join(report_sentences(StudyReport(dataset, conclusions=concluded)))
    assert "are not within 10 % of that" in printed
    page = re.sub("</?code>", "`", html.unescape(render(dataset, conclusions=concluded)))
    for each in concluded:
        for sentence in each.sentences:
            assert sentence in printed
            assert f">{sentence}</p>" in page


def test_the_page_has_styles_for_paper_and_the_dark(page):
    on_paper = page.split("@media print {")[1].split("</style>")[0]
    assert re.search(r"\.scroll \{ max-height: none; overflow: visible; \}", on_paper)
    assert "@media (prefers-color-scheme: dark)" in page
    # Figures are drawn on white, with dark lines and letters: in the dark, too.
    assert re.search(r"\.figure, img \{ background: #fff;", page)


def test_the_answer_and_assumed_values_stand_above_a_figure_and_the_details():
    dataset = study(RATES, bound_hz=20e3, assumed={"hosts.latency": "0 s"})
    concluded = findings(study(RATES, SIZES, bound_hz=20e3, operating_point=POINT))
    answers = [each for each in concluded if each.is_answer]
    text = render(dataset, "Lines", conclusions=concluded)
    # 10 MB (1 + place) × 1.2 at the last of four rates, and at the first.
    extremes = "is highest, 48 MB, at 12 kHz, and lowest, 12 MB, at 3 kHz."
    answer = html.escape(answers[0].sentences[0])
    unknown = "Assumed, and their effect is not known: hosts.latency = 0 s."
    parts = (extremes, answer, unknown, ">Lines<", 'id="details"', "<nav", ">Results<")
    order = [text.index(each) for each in parts]
    assert order == sorted(order)
    assert 'class="figure' not in text  # the lines are a picture, and not drawn again
    assert "Assumed, and" not in render(study(RATES, SIZES))


def test_assumed_values_that_move_the_answer_come_first_and_unknown_ones_last():
    assumed = {"network.links.uplink.rate": "800 Gb/s", "hosts.jitter": "4.0"}
    changes = (Change("8 Tb/s", 105e6), Change("400 Gb/s", None))
    effect = Effect("network.links.uplink.rate", "800 Gb/s", changes)
    moving = Effects(PEAK, True, 84e6, (effect,), {"hosts.jitter": "4.0"})
    dataset = study(RATES, assumed=assumed, operating_point=POINT)
    page = html.unescape(render(dataset, "Lines", effects=moving)).replace("\xa0", " ")
    assert "which is 84 MB by the formula for random events at 12 kHz" in page
    assert (
        "<td>network.links.uplink.rate = 800 Gb/s</td>"
        "<td>8 Tb/s gives 105 MB (+25 %); 400 Gb/s is too slow for the event rate</td>"
    ) in page
    assert "<td>effect not known</td><td>hosts.jitter = 4.0</td>" in page
    printed = report_sentences(StudyReport(dataset, effects=moving))
    assert "effect not known: hosts.jitter = 4.0." in printed


def test_two_studies_share_a_page_and_have_a_folder_each(tmp_path):
    pair = [study(RATES, seeds=1, study=name, title=name.title()) for name in ("shallow", "deep")]
    paths = write_reports([StudyReport(each, None, "", (), ()) for each in pair], tmp_path)
    files = itertools.product(("shallow", "deep"), ("lines.png", "lines.pdf", "results.parquet"))
    written = [str(path.relative_to(tmp_path)) for path in paths]
    assert written == ["report.html", *map("/".join, files)]
    text = paths[0].read_text()
    assert "<h1>Shallow and Deep</h1>" in text
    assert text.count("data:image/svg+xml") == 2


def test_hostile_text_is_escaped():
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    models = ("network.switch.tor.model", [evil, "infinite"], "")
    for axes in ((RATES, models), (RATES, SIZES, models)):
        dataset = study(*axes, title=evil, scenario=evil, study=evil)
        page = render(dataset, evil, description=evil, provenance=[(evil, evil)])
        markup = re.sub(r'<script id="plotly".*?</script>', "", page, flags=re.DOTALL)
        assert "<script>alert" not in markup
        assert "<img src=x" not in markup
    evil = "<img src=x onerror=alert(2)>"
    dataset = study(RATES, SIZES).rename({PEAK: evil})
    assert evil not in render(dataset, "Lines")


def test_the_same_results_give_the_same_bytes(tmp_path):
    first, second = (
        [path.read_bytes() for path in write_report(study(RATES), tmp_path / name)] for name in "ab"
    )
    assert first == second
    rack = load("atlas-lab")
    assert operating_point(rack) == POINT


# The figures


AXES = [(), (RATES,), (MODELS,), (RATES, SIZES), (MODELS, SIZES), (RATES, SIZES, MODELS)]
AXES += [(RATES, SIZES, MODELS, UPLINKS), (("event.rate", [5e3], "Hz"),)]
AXES += [(("event.rate", [5e3], "Hz"), ("event.size", [1e6], "B")), (MODELS, UPLINKS)]


@pytest.mark.parametrize("axes", AXES, ids=lambda axes: "-".join(a[0] for a in axes) or "none")
@pytest.mark.parametrize(("make", "seeds"), [(study, 1), (searched, 3)])
def test_every_shape_of_study_is_drawn(axes, make, seeds):
    dataset = make(*axes, seeds=seeds)
    drawn = pictures(dataset)
    first = "names" if axes == (MODELS,) else "lines"
    assert [each.name for each in drawn][: bool(axes)] == [first][: bool(axes)]
    concluded = findings(dataset)
    draw([*drawn, *concluded])
    assert all({len(row) for row in each.rows} == {len(each.head)} for each in concluded)
    page = render(dataset, conclusions=concluded)
    assert all(finding.heading in page for finding in concluded)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (1, 0), (1, 2)])
def test_missing_results_are_drawn(place):
    dataset = study(RATES, SIZES)
    dataset[PEAK][{"by": place[0], "event.rate": place[1]}] = np.nan
    draw(pictures(dataset))
    gives = "formula gives 9 of 12" if place[0] == 0 else "simulation gives 9 of 12"
    assert gives in render(dataset)


def test_a_single_value_and_a_search_that_found_nothing_are_drawn():
    dataset = study(RATES, SIZES)
    known = dataset[PEAK][1, 1, 1, 1].item()
    dataset[PEAK][:] = np.nan
    dataset[PEAK][1, 1, 1, 1] = known
    assert methods_of(dataset, PEAK) == ["simulate"]
    draw(pictures(dataset))
    assert len(list(study_table.rows(dataset))) == 1
    dataset = searched(SIZES)
    dataset["boundary"][:] = np.nan
    dataset["boundary_status"].loc[{"by": "simulate"}] = "never"
    assert [row[-1] for row in study_table.rows(dataset)] == ["never from 500 Hz on"] * 3
    draw(pictures(dataset))
    assert "9 of 9 searches found no boundary" in render(dataset)


MANY = ("event.rate", np.arange(1, 21) * 1234.0, "Hz")
OVERLAP = [(MANY, SIZES), (RATES, SIZES, UPLINKS), (MODELS, SIZES), (MODELS, UPLINKS, RATES)]


@pytest.mark.parametrize("axes", OVERLAP, ids=lambda axes: "-".join(a[0] for a in axes))
def test_no_texts_of_a_figure_overlap(axes, monkeypatch):
    for each in pictures(study(*axes, bound_hz=9e3, operating_point=POINT)):
        drawn = {}

        def record(text, renderer, original=matplotlib.text.Text.draw, drawn=drawn):
            original(text, renderer)
            if text.get_visible() and text.get_text().strip():
                drawn[id(text)] = text.get_text(), text.get_window_extent(renderer)

        with monkeypatch.context() as patch:
            patch.setattr(matplotlib.text.Text, "draw", record)
            canvas(each.figure).savefig(io.BytesIO(), dpi=100)
        assert len(drawn) > 8
        for (text, box), (other, second) in itertools.combinations(drawn.values(), 2):
            assert not box.overlaps(second), f"{each.name}: {text!r} on {other!r}"


def test_a_report_draws_the_variables_of_the_study_side_by_side():
    dataset = with_latency(RATES, MODELS, methods=("simulate",), show=[LATENCY, PEAK])
    assert shown_variables(dataset) == [LATENCY, PEAK]
    assert shown_variables(dataset, PEAK) == [PEAK]
    left, right = {each.name: each.figure for each in pictures(dataset)}["lines"].panels
    assert left.y.label == "event latency, mean (ms)"
    assert right.y.label == "peak occupancy of the top-of-rack switch (MB)"
    # 12 MB (1 + place of the rate), as 1.2 ms on the left.
    assert curves(left)[0].y == pytest.approx([1.2, 2.4, 3.6, 4.8])
    assert curves(right)[0].y == pytest.approx([12, 24, 36, 48])
    assert study_table.head(dataset)[2:4] == [
        "event latency, mean, simulation (ms)",
        "peak occupancy of the top-of-rack switch, simulation (MB)",
    ]


# The command

STUDY = """
title = "Formula only"
scenario = "small-rack"
methods = ["analyse"]
[grid]
"event.rate" = ["1 kHz", "2 kHz"]
"""


@pytest.fixture
def computed(tmp_path):
    """A study's file and a store that holds all of it."""
    file, store = tmp_path / "mine.toml", tmp_path / "store"
    file.write_text(STUDY)
    made = load_study(file)
    with Store.open(store, create=True, command="daqloom study run mine.toml") as opened:
        run(made, opened, InProcess(opened))
    return file, store


def test_the_command_writes_the_report_of_a_store_that_is_there(computed, tmp_path):
    file, store = computed
    folder = tmp_path / "out"
    assert printed("report", file, "--store", store, "--output", folder).splitlines() == [
        str(folder / name) for name in ("report.html", "lines.png", "lines.pdf", "results.parquet")
    ]
    page = (folder / "report.html").read_text()
    provenance = page.split("Provenance of the numbers")[-1]
    assert "daqloom study run mine.toml" in provenance
    assert "2 by 1 process" in provenance
    assert "no store" in output("report", computed[0], "--store", tmp_path / "none", code=2)
    assert not (tmp_path / "mine-report").exists()


def test_provenance_counts_each_record_once(computed):
    file, store = computed
    with study_provenance.WitnessedStore.open(store, create=False) as opened:
        for _ in range(2):
            list(replay(load_study(file), opened))
        [origin] = opened.origins
    assert origin.runs == 2


def test_a_report_names_the_results_that_are_missing():
    dataset = study(RATES, SIZES, seeds=4)
    assert missing_seeds(dataset, PEAK) == []
    dataset[PEAK].loc[{"by": "simulate", "seed": [3, 4], "event.rate": RATES[1][0]}] = np.nan
    dataset[PEAK].loc[{"by": "simulate", "event.rate": RATES[1][1]}] = np.nan  # no system
    partial, everything = len(SIZES[1]), len(SIZES[1]) * len(RATES[1])
    expected = (
        f"The simulation lacks {2 * partial} results of 4 seeds at {partial} of {everything} "
        "points, whose numbers are of the other seeds; `daqloom study run` computes what is "
        "missing."
    )
    assert missing_seeds(dataset, PEAK) == [expected]
    assert expected in StudyReport(dataset).lead
    unbounded = searched(RATES, seeds=2)
    unbounded["boundary"].loc[{"by": "simulate", "seed": 2}] = np.nan
    unbounded["boundary_status"].loc[{"by": "simulate", "seed": 2}] = "above"
    assert missing_seeds(unbounded, "boundary") == []
    unbounded["boundary_status"].loc[{"by": "simulate", "seed": 2}] = ""
    assert f"lacks {len(RATES[1])} results of 2 seeds" in missing_seeds(unbounded, "boundary")[0]

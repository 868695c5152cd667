"""Study files: axes, ranges, the quick form, and every way to get them wrong."""

from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file.axis import cartesian, parallel_axis
from daqloom.study.file.load import load_study
from daqloom.study.file.points import attribute
from daqloom.study.run.plan import searched_cells
from daqloom.study.run.program import tasks
from support.repository import ROOT
from support.small_studies import written

ATLAS = load("atlas-lab")
STUDIES = sorted((ROOT / "studies").glob("*.toml"))

GRID = """
scenario = "small-rack"
methods = ["analyse", "simulate"]
[grid]
"event.rate" = { from = "1 kHz", to = "3 kHz", step = "1 kHz" }
event.size = ["1 MB", "2 MB"]
[repeat]
seeds = 2
[quick.grid]
event.size = ["500 kB"]
[quick.repeat]
seeds = 1
"""


def test_a_grid_is_the_product_of_its_axes_and_each_method_has_its_runs(tmp_path: Path) -> None:
    loaded = written(tmp_path, GRID)
    assert loaded.shape == (3, 2)
    assert loaded.points == 6
    assert [axis.keys for axis in loaded.axes] == [("event.rate",), ("event.size",)]
    assert loaded.axes[0].coordinates("event.rate", ATLAS) == [1000.0, 2000.0, 3000.0]
    assert loaded.axes[1].coordinates("event.size", ATLAS) == [1_000_000, 2_000_000]
    point = loaded.scenario((2, 1))
    assert (point.event.rate, point.event.size) == (3000.0, 2_000_000)
    listed = list(tasks(written(tmp_path, GRID)))
    assert sum(task.method == "analyse" for task in listed) == 6
    assert sum(task.method == "simulate" for task in listed) == 12
    assert len(set(listed)) == 18
    quick = written(tmp_path, GRID, quick=True)
    assert quick.shape == (3, 1)
    assert quick.seeds == (1,)


def test_zipped_keys_change_together_under_the_name_of_a_distinct_one() -> None:
    axis = parallel_axis({"event.rate": ["1 kHz", "2 kHz"], "event.size": ["2 MB", "1 MB"]})
    assert len(axis) == 2
    assert axis.overrides(1) == {"event.rate": "2 kHz", "event.size": "1 MB"}
    axis = parallel_axis({"event.rate": ["1 kHz", "1 kHz"], "event.size": ["2 MB", "1 MB"]})
    assert axis.name == "event.size"
    assert axis.coordinates("event.rate", ATLAS) == [1000.0, 1000.0]
    with pytest.raises(StudyError, match=r"name them with \[variants\] instead"):
        parallel_axis({"event.rate": ["1 kHz", "1 kHz"], "event.size": ["2 MB", "2 MB"]})


def test_a_range_includes_its_end_and_decimal_steps_are_exact() -> None:
    axis = cartesian("event.size", {"from": "1 MB", "to": "8 MB", "count": 4, "spacing": "log"})
    assert axis.coordinates("event.size", ATLAS) == [1_000_000, 2_000_000, 4_000_000, 8_000_000]
    linear = cartesian("builders.units", {"from": 2, "to": 8, "step": 3})
    assert linear.coordinates("builders.units", ATLAS) == [2, 5, 8]
    axis = cartesian("event.size", {"from": "0.5 MB", "to": "8 MB", "step": "0.5 MB"})
    assert axis.coordinates("event.size", ATLAS) == [500_000 * k for k in range(1, 17)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('scenario = "small-rack"\n[grid]\n"event.rat" = ["1 kHz"]', 'did you mean "event.rate"'),
        ('scenario = "small-rack"\n[grid]\n"event.rate" = [1000]', "has no unit"),
        ('scenario = "small-rack"\n[grid]\n"event.rate" = []', "has no values"),
        ('scenario = "small-rack"\n[grid]\n"event.rate" = ["1 kHz", "1000 Hz"]', "twice"),
        ('scenario = "small-rack"\n[grid]\n"run.seed" = [1, 2]', "[repeat]"),
        ('scenario = "small-rack"\nspeed = 3', 'unknown key "speed"'),
        ('scenario = "nowhere"', 'there is no scenario "nowhere"'),
        ('scenario = "small-rack"\nmethods = ["guess"]', "methods.0"),
        ('scenario = "small-rack"\n[repeat]\nseeds = 0', "repeat.seeds = 0"),
        ('scenario = "small-rack"\n[[zip]]\n"event.rate" = ["1 kHz"]\n"builders.units" = [1, 2]',
         "equally long"),
        ('scenario = "small-rack"\n[set]\nevent.size = "5"',
         'mine.toml: event.size = "5" has no unit'),
        ('scenario = "small-rack"\n[variants.none]\n"builders.units" = 0',
         "mine.toml: builders.units = 0; pull requires"),
        ('scenario = "small-rack"\nmethods = ["analyse", "analyse"]',
         "mine.toml: methods has a method twice"),
        ('scenario = "small-rack"\nmethods = ["analyse"]\n[search]\nkey = "event.rate"\n'
         'find = "largest"\nwhere = "packets_dropped == 0"\nbounds = ["1 kHz", "2 kHz"]\n'
         'tolerance = "1 Hz"\nmethod = "simulate"',
         'mine.toml: methods lacks "simulate", the method of search.method'),
        ("", "scenario is missing; expected the name of a scenario"),
        ("scenario =", "not valid TOML"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StudyError, match=r"^[^\n]+$") as caught:
        written(tmp_path, text)
    assert says in str(caught.value)
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('methods = ["guess"]\nspeed = 3\n[repeat]\nseeds = "a"\nseedz = 3\n',
         ["methods.0 = 'guess'", "repeat.seeds = 'a'", '"repeat.seedz"', '"speed"']),
        ('[set]\n"event.size" = "3 XB"\n"run.warmup" = "x"\n'
         '[grid]\n"event.rat" = ["1 kHz"]\n"event.rate" = ["2"]\n'
         '[variants]\na = { "event.sise" = "1 kB" }\n',
         ['"event.rat"', 'event.rate = "2"', '"event.sise"', '"3 XB"', 'run.warmup = "x"']),
        ('methods = ["guess"]\n[grid]\n"event.rat" = ["1 kHz"]\n"event.size" = ["2x5 MB"]\n'
         '[repeat]\nseeds = "three"\n',
         ["methods.0 = 'guess'", "repeat.seeds = 'three': expected a whole number",
          '"event.rat"', 'write it as "10 MB"']),
        ('[report]\nshow = ["cost", "event_rat_hz"]\n',
         ["column of a report's table", 'did you mean "event_rate_hz"']),
    ],
    ids=["tables", "axes and set", "tables and axes", "metrics"],
)  # fmt: skip
def test_all_mistakes_of_a_study_are_listed(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        written(tmp_path, f'scenario = "small-rack"\n{text}')
    sentences = [str(caught.value), *caught.value.__notes__]
    assert len(sentences) == len(parts)
    for sentence, part in zip(sentences, parts, strict=True):
        assert sentence.startswith(f"{tmp_path}/mine.toml: ")
        assert part in sentence


SEARCH = """
scenario = "small-rack"
[search]
key = "{key}"
find = "smallest"
where = "{where}"
bounds = {bounds}
tolerance = {tolerance}
"""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"key": "switch.tor.bufer"}, 'did you mean "network.switch.tor.buffer"'),
        ({"where": "packets_droped == 0"}, "packets_droped"),
        ({"bounds": '["2 MB", "1 MB"]'}, "search.bounds"),
        ({"bounds": "[1, 2]"}, "has no unit"),
        ({"tolerance": '"0 B"'}, "search.tolerance"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(
    tmp_path: Path, changes: dict[str, str], says: str
) -> None:
    fields = {
        "key": "network.switch.tor.buffer",
        "where": "packets_dropped == 0",
        "bounds": '["1 MB", "65 MB"]',
        "tolerance": '"1 MB"',
    }
    assert (
        searched_cells(written(tmp_path, SEARCH.format(**fields))) == 6 + 2
    )  # 64 MB: six halvings
    with pytest.raises(StudyError) as caught:
        written(tmp_path, SEARCH.format(**(fields | changes)))
    assert says in str(caught.value)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
def test_shipped_studies_load(path: Path, quick: bool) -> None:
    assert load_study(path, quick=quick).points >= 1


def test_the_reference_page_is_written_from_the_models() -> None:
    from daqloom.study.file.reference import reference

    page = ROOT / "docs" / "reference" / "study.md"
    assert page.read_text() == reference()


def test_a_study_that_is_not_shipped_is_named_with_those_that_are() -> None:
    with pytest.raises(StudyError, match=r'no study "zzz"; known are .*atlas-min-buffer'):
        load_study("zzz")
    with pytest.raises(StudyError, match=r'no study "atlas-min"; did you mean "atlas-min-buffer"'):
        load_study("atlas-min")


VARIANTS = """
scenario = "atlas-lab"
[grid]
"event.size" = ["1 MB", "2 MB"]
[variants]
"as it is" = {}
"LHC, jumbo" = { "event.arrivals" = "lhc", "network.mtu" = "9 kB" }
"deep" = { network.switch.tor.model = "acx7100-48l" }
[quick.variants]
"as it is" = {}
"""


def test_variants_are_named_steps_with_keys_of_their_own(tmp_path: Path) -> None:
    loaded = written(tmp_path, VARIANTS)
    assert loaded.shape == (2, 3)
    assert loaded.overrides((1, 0)) == {"event.size": "2 MB"}
    jumbo = {"event.size": "1 MB", "event.arrivals": "lhc", "network.mtu": "9 kB"}
    assert loaded.overrides((0, 1)) == jumbo
    assert loaded.scenario((0, 2)).network.switch.tor.model == "acx7100-48l"
    axis = loaded.axes[1]
    assert (axis.name, axis.labels) == ("variant", ("as it is", "LHC, jumbo", "deep"))
    # A key that a variant does not set has the value of the scenario.
    assert axis.coordinates("event.arrivals", loaded.base) == ["poisson", "lhc", "poisson"]
    assert axis.coordinates("network.mtu", loaded.base) == [1500, 9000, 1500]
    assert load_study(tmp_path / "mine.toml", quick=True).shape == (2, 1)
    from daqloom.study.run.dataset import to_dataset

    dataset = to_dataset(written(tmp_path, VARIANTS), [])
    assert list(dataset["variant"].values) == ["as it is", "LHC, jumbo", "deep"]
    assert list(dataset["network.mtu"].sel(variant="LHC, jumbo").values.flat) == [9000]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ('"a" = { "event.sise" = "1 MB" }', 'unknown key "event.sise"'),
        ('"a" = { "network.mtu" = "1 Gb/s" }', "network.mtu"),
        ('"a" = { "event.size" = "1 MB" }', "event.size is set twice"),
        ('"a" = { "run.seed" = 3 }', "set by .repeat."),
        (
            '"ok" = {}\n"a" = { "run.warmup" = "5 s" }\n"b" = {}',
            "leaves no time to count of run.duration",
        ),
        ('"" = {}', "must have 1 to 60 characters"),
        ('"a" = 3', "variants.a"),
    ],
)
def test_variants_that_make_no_sense_are_refused(tmp_path: Path, step: str, sentence: str) -> None:
    with pytest.raises((StudyError, ScenarioError), match=sentence):
        written(tmp_path, VARIANTS.split("[variants]")[0] + f"[variants]\n{step}\n")


def test_a_study_lists_defaults_that_neither_it_nor_its_scenario_gives(tmp_path: Path) -> None:
    from daqloom.study.run.dataset import to_dataset

    text = (ROOT / "scenarios" / "small-rack.toml").read_text()
    before, _, after = text.partition('[network.links.uplink]\nrate = "40 Gb/s"\n')
    (tmp_path / "bare.toml").write_text(f"{before}[network.links.uplink]\n{after}")
    loaded = written(tmp_path, GRID.replace("small-rack", "bare.toml"))
    assumed = {"network.links.uplink.rate": "800 Gb/s"}
    assert attribute(to_dataset(loaded, []), "assumed", None) == loaded.assumptions() == assumed
    swept = GRID.replace("[grid]", '[grid]\n"network.links.uplink.rate" = ["40 Gb/s"]')
    assert written(tmp_path, swept.replace("small-rack", "bare.toml")).assumptions() == {}


def test_a_study_names_the_metrics_of_its_report(tmp_path: Path) -> None:
    from daqloom.study.run.dataset import to_dataset

    shown = ["throughput_bps", "collection_latency_s.p99"]
    loaded = written(tmp_path, GRID + f"[report]\nshow = {shown}\n".replace("'", '"'))
    assert loaded.show == tuple(shown)
    assert attribute(to_dataset(loaded, []), "show", None) == shown
    assert written(tmp_path, GRID).show == ()


@pytest.mark.parametrize(
    ("show", "sentence"),
    [
        ('["throughput"]', '"throughput" is not a metric; did you mean "throughput_bps"'),
        ('["cost"]', "the relative cost of switches is a column"),
        ('["events_built"]', "events_built is not given by analyse"),
        ('"events_built"', "report.show"),
    ],
)
def test_a_report_shows_metrics_that_the_study_has(
    tmp_path: Path, show: str, sentence: str
) -> None:
    text = f'scenario = "small-rack"\nmethods = ["analyse"]\n[report]\nshow = {show}\n'
    with pytest.raises(StudyError, match=sentence):
        written(tmp_path, text)

"""The commands that conclude from a study: one JSON object, sentences, figures, mistakes."""

import re
from pathlib import Path

import pytest

from daqloom.cli.console import terminal as console
from support.command import commands
from support.small_studies import complete, written

invoke, _, printed, record, refused = commands()
STUDY = """
scenario = "small-rack"
methods = ["analyse", "simulate"]
[set]
"run.duration" = "0.1 s"
"run.warmup" = "10 ms"
"network.switch.tor.model" = "infinite"
[grid]
"event.rate" = ["1 kHz", "2 kHz", "4 kHz"]
"event.size" = ["200 kB", "300 kB", "350 kB", "400 kB"]
"""


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that name a study which is computed."""
    folder = tmp_path_factory.mktemp("conclude")
    complete(written(folder, STUDY), folder / "store")
    return [str(folder / "mine.toml"), "--store", str(folder / "store")]


def test_the_commands_print_one_json_object(computed: list[str]) -> None:
    told = {}
    for name in ("levels", "fit", "compare"):
        few = ["--at", "event.rate=2 kHz"] if name == "levels" else []
        told[name] = record("study", name, *computed, *few)
        assert (told[name]["schema"], told[name]["study"]) == (1, "mine")
    assert [each["name"] for each in told["levels"]["periods"]] == ["hour", "fill", "day"]
    assert len(told["levels"]["points"]) + len(told["levels"]["left_out"]) == 4
    assert [fit["method"] for fit in told["fit"]["fits"]] == ["analyse", "simulate"]
    [place] = told["fit"]["fits"][0]["predictions"]
    assert place["at"] == {"event.rate": 2000.0, "event.size": 400000.0}  # the scenario's own
    assert len(told["compare"]["pairs"][0]["points"]) == 12


def test_the_commands_print_sentences_and_draw_figures(computed: list[str], tmp_path: Path) -> None:
    for name, words in (
        ("levels", "At 2 kHz × 400 kB"),
        ("fit", "At 2 kHz × 400 kB the surface through the simulation gives"),
        ("compare", "times the value of the formula"),
    ):
        drawn = tmp_path / f"{name}.png"
        few = ["--at", "event.size=400 kB"] if name == "levels" else []
        assert words in printed("study", name, *computed, *few, "--figure", drawn)
        assert drawn.stat().st_size > 10_000


def test_notes_of_levels_are_footnotes(
    computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    table, _, footnotes = printed("study", "levels", *computed).rstrip().rpartition("\n\n")
    known = dict(line.split("  ", 1) for line in footnotes.splitlines())
    assert "the tail may be bounded" in known.values()
    assert list(known) == [str(number) for number in range(1, len(known) + 1)]
    assert len(set(known.values())) == len(known)
    [*_, last] = table.splitlines()
    assert re.search(r"  (–|[0-9]+(, [0-9]+)*)$", last.rstrip())


@pytest.mark.parametrize("name", ["page.pdf", "page.html", "figure.PNG"])
def test_a_report_is_a_folder(computed: list[str], tmp_path: Path, name: str) -> None:
    said = refused("report", *computed, "--output", tmp_path / name)
    assert f"{name} is the name of a file; expected a folder" in said
    assert not (tmp_path / name).exists()


def test_a_report_shows_its_progress_without_a_terminal(
    computed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "SILENT_S", -1.0)  # as if it took long
    monkeypatch.setattr(console, "SPOKEN_EVERY_S", 0.0)
    done = invoke("report", *computed, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    shares = re.findall(r"fitting mine: (\d+)%", done.stderr)
    assert shares[-1] == "100"
    assert len(shares) == 12  # one for each simulated point


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["levels", "--period", "fortnight"], '"fortnight" is not a period'),
        (["levels", "--at", "rate=1"], "the axes of this study are event.rate, event.size"),
        (["levels", "--at", "event.rate=1 MB"], '--at event.rate: "1 MB" is not in Hz'),
        (["levels", "--at", "event.rate=3 kHz"], "is not a step of this study"),
        (["levels", "--period", "1 s", "--fill", "x"], '"x" is not a period'),
        (["fit", "--terms", "1 + z"], 'cannot read "z"'),
        (["fit", "--below", "1 Hz"], '--below "1 Hz" is not in B'),
        (["fit", "--below", "1 B"], "0 points are too few"),
        (["fit", "--show", "nonsense"], 'no metric "nonsense"'),
        (["fit", "--show", "cost"], "the relative cost of switches is a column"),
        (["compare", "--show", "event_rate_hz"], "no two methods"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(
    computed: list[str], words: list[str], said: str
) -> None:
    assert said in refused("study", words[0], *computed, *words[1:])

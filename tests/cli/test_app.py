"""The command line around the commands: completion, lists for programs, quiet, help by subject."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from daqloom.cli.app import Command
from daqloom.cli.console import terminal as console
from daqloom.cli.main import app
from daqloom.cli.options import load_with
from daqloom.results.metrics import METRICS
from daqloom.scenario import ScenarioError, presets
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.study.file.load import shipped_studies
from support.command import commands

invoke = commands().invoke


def completion_of(words: Sequence[str]) -> dict[str, str]:
    """How bash asks for the last word."""
    return {
        "_DAQLOOM_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["daqloom", *words]),
        "COMP_CWORD": str(len(words)),
    }


def completed(*words: str) -> list[str]:
    """Return the completions of the last word that bash receives."""
    done = CliRunner().invoke(app, [], env=completion_of(words), prog_name="daqloom")
    assert done.stderr == ""
    return done.stdout.split()


def test_names_keys_and_metrics_are_completed() -> None:
    assert completed("analyse", "lhcb-") == [n for n in presets() if n.startswith("lhcb-")]
    assert completed("study", "run", "inc") == [n for n in shipped_studies() if n[:3] == "inc"]
    fabrics = sorted([*shipped_fabrics(), "clos"])
    assert completed("topology", "show", "c") == [n for n in fabrics if n.startswith("c")]
    of_a_rack = completed("simulate", "small-rack", "--set", "event.")
    assert {"event.size=", "event.arrivals="} <= set(of_a_rack)
    of_a_fabric = completed("simulate", "laptop", "--set", "event.")
    assert {"event.fragment_size=", "event.packing="} <= set(of_a_fabric)
    assert "event.size=" not in of_a_fabric
    assert "building.barrier=" in completed("simulate", "laptop", "--set", "building.")
    assert completed("simulate", "no-such-thing", "--set", "event.") == []
    assert {"event.size", "event_rate_hz", "event"} <= set(completed("explain", "event"))
    assert completed("schema", "s") == ["scenario", "study", "switch"]
    known = sorted(metric.name for metric in METRICS if metric.name.startswith("event_rate"))
    assert completed("report", "incast-buffers", "--show", "event_rate") == known


@pytest.mark.process
def test_the_program_that_a_shell_asks_has_all_commands() -> None:
    """Though it is started without words, by which it would leave out the others."""
    code = "from daqloom.__main__ import main; main()"
    words = ("study", "run", "inc")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | completion_of(words),
        capture_output=True,
        text=True,
    )
    assert (done.stdout.split(), done.stderr) == (completed(*words), "")


@pytest.mark.process
def test_the_command_offers_shell_completion() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "daqloom", "--show-completion"],
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
    )
    assert "--show-completion" in done.stderr  # which asks for the name of a shell
    told = invoke("--help").stdout
    assert "--install-completion" in told


@pytest.mark.parametrize(
    ("command", "kind", "names"),
    [
        (["scenarios"], "scenarios", presets),
        (["study", "list"], "studies", shipped_studies),
        (["topology", "list"], "fabrics", shipped_fabrics),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_lists_are_for_programs_too(command, kind, names) -> None:
    done = invoke(*command, "--json")
    record = json.loads(done.stdout)
    assert (record.keys(), done.stderr) == ({"schema", kind}, "")
    assert [each["name"] for each in record[kind]] == list(names())
    assert all(each["title"] for each in record[kind])
    lines = invoke(*command).stdout.splitlines()
    assert [line.split()[0].rstrip(":") for line in lines] == list(names())


def test_help_groups_commands_by_purpose_and_cuts_no_summary() -> None:
    shown = invoke("--help").stdout
    sections = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert sections == [
        "Options:",
        "Describe, analyse, simulate:",
        "Studies:",
        "Real event builders:",
        "Networks and data:",
    ]
    live = shown.partition("Real event builders:")[2].partition("Networks")[0]
    named = set(re.findall(r"^  (\S+)", live, re.MULTILINE))
    assert named == {
        *("measure", "console", "control", "runs", "unit", "switch", "lab", "doctor", "calibrate"),
    }
    groups = ["study", "control", "switch", "lab", "topology", "faults", "data"]
    for words in [[], *([group] for group in groups)]:
        assert "..." not in invoke(*words, "--help").stdout.replace("[ARGS]...", "")


def test_options_stand_for_keys_of_the_run() -> None:
    done = invoke("simulate", "small-rack", "--duration", "0.01 min", "--json", "--seed", "7")
    assert json.loads(done.stdout)["engine"]["virtual_s"] == 0.6
    assert json.loads(done.stdout)["seed"] == 7
    for command, options, sentence in (
        ("simulate", ["--duration", "soon"], "--duration: run.duration"),
        ("measure", ["--seed", "-1"], "--seed: run.seed = -1 is too small"),
        ("measure", ["--duration", "5"], '--duration: measure.duration = "5" has no unit'),
    ):
        refused = invoke(command, "laptop", *options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert sentence in refused.stderr


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_a_line_for_each_stage_of_a_run_unless_it_is_quiet(clock, capsys) -> None:
    with console.staged_progress("measuring", quiet=True, at_once="the units start") as report:
        clock[0] = 60.0
        report(0.5, "4 of 4 units running", "running")
    assert capsys.readouterr() == ("", "")
    clock[0] = 0.0
    with console.staged_progress("measuring") as report:
        for clock[0], stage in [
            (1.0, "waiting"),
            (2.5, "waiting"),
            (3.0, "running"),
            (4, "running"),
        ]:
            report(0.1, stage, stage)
    assert capsys.readouterr().err.splitlines() == [
        "measuring: 10%, waiting",
        "measuring: 10%, running",
    ]


def test_quiet_is_an_option_of_whatever_takes_long() -> None:
    for command in (
        ["simulate", "small-rack", "--duration", "200 ms"],
        ["compare", "small-rack"],
        ["topology", "check", "clos", "--leaves", "2", "--spines", "1", "--hosts-per-leaf", "2"],
    ):
        loud, quiet = invoke(*command, "--json"), invoke(*command, "--json", "-q")
        assert (quiet.exit_code, quiet.stderr) == (0, "")
        assert json.loads(quiet.stdout).keys() == json.loads(loud.stdout).keys()


def test_a_terminal_shows_something_at_once(clock, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with console.staged_progress("measuring laptop", at_once="the units start"):
        pass
    assert "measuring laptop, the units start" in capsys.readouterr().err


def test_every_command_takes_several_figures_and_no_other_option_twice(tmp_path: Path) -> None:
    figures = [tmp_path / name for name in ("a.html", "b.pdf", "c.png")]
    words = [word for path in figures for word in ("--figure", str(path))]
    done = invoke("analyse", "small-rack", "-q", *words)
    assert done.exit_code == 0, done.output
    assert "note:" not in done.output
    assert all(path.stat().st_size > 1000 for path in figures)
    for command in leaves(get_command(app)):
        assert isinstance(command, Command), command.name
        assert all(p.multiple for p in command.params if "--figure" in p.opts), command.name
    refused = invoke("simulate", "small-rack", "--seed", "1", "--seed", "2")
    assert refused.exit_code == 2
    assert "--seed is given twice; give it once" in refused.stderr


def test_an_unknown_choice_is_refused_with_the_known_ones() -> None:
    refused = invoke("topology", "configure", "switch.toml", "--datapath", "kernel")
    assert refused.exit_code == 2
    assert "'--datapath': 'kernel' is not one of 'system', 'netdev'" in refused.stderr


def leaves(command: Any) -> Iterator[Any]:
    """All commands below a group, or the command itself."""
    inside = getattr(command, "commands", None)
    if inside is None:
        yield command
    for each in (inside or {}).values():
        yield from leaves(each)


def test_a_warm_up_is_checked_with_the_duration_of_the_option() -> None:
    # small-rack runs for 1 s: a warm-up of 1.5 s needs the longer duration.
    longer = load_with("small-rack", ["run.warmup=1.5 s"], {"run.duration": "2 s"})
    assert (longer.scenario.run.warmup, longer.scenario.run.duration) == (1.5, 2.0)
    measured = load_with("laptop", ["measure.warmup=20 s"], {"measure.duration": "30 s"})
    assert measured.scenario.measure.warmup == 20.0
    with pytest.raises(ScenarioError, match=r"^--duration: run\.duration = \"x\""):
        load_with("small-rack", [], {"run.duration": "x"})
    with pytest.raises(ScenarioError, match="leaves no time to count"):
        load_with("small-rack", ["run.warmup=3 s"], {"run.duration": "2 s"})


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("simulat", "laptop"), 'no command "simulat"; did you mean `daqloom simulate`?'),
        (("topology", "mend"), 'no command "mend"; did you mean `daqloom topology check` or '),
        (("faults", "read"), 'no command "read"; there are `daqloom faults log`, '),
        (("switch", "a\x1b[2J"), r'no command "a\x1b[2J"; there are `daqloom switch '),
    ],
)
def test_a_wrong_command_is_answered_with_the_nearest_ones(arguments, answer) -> None:
    found = invoke(*arguments)
    assert found.exit_code == 2
    assert answer in found.stderr


@pytest.mark.process
@pytest.mark.parametrize("limit", ["100000", "20"])
def test_a_reader_that_goes_away_ends_a_command_quietly(tmp_path: Path, limit: str) -> None:
    words = ["--set", "readout.units=2", "--set", "event.packing=10", "--mfps", "2000"]
    made = invoke("data", "generate", "laptop", "-o", str(tmp_path), "-q", *words)
    assert made.exit_code == 0, made.output
    code = "from daqloom.__main__ import main; main()"
    file = str(tmp_path / "source-0.mfp")
    with subprocess.Popen(
        [sys.executable, "-c", code, "data", "inspect", file, "--limit", limit],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        child.stdout.close()  # before anything is written
        assert child.stderr.read() == b""
    assert child.returncode == 141  # 128 + SIGPIPE

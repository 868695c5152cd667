"""The command line: what it prints, and what it says when something is wrong."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
import typer

from daqloom.cli.app import group, narrow
from daqloom.cli.main import app
from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.system import System
from support.command import commands
from support.imports import imported
from support.ordinary_user import ordinary_user

BAD_INPUT = 2
invoke, _, _, _, refused = commands()
FAILED = 1
INTERRUPTED = 130

LINK = "access.0.down"


def daqloom(*arguments, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "daqloom", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_scenarios_are_listed_and_shown_as_they_can_be_loaded(tmp_path):
    lines = invoke("scenarios").stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names)
    assert {"atlas-hllhc", "atlas-lab", "incast-rack", "small-rack", "lhcb-run3-test"} < set(names)
    assert all(len(line.split()) > 5 for line in lines)
    done = invoke("show", "atlas-lab", "--set", "network.switch.tor.model=qfx5120-48y")
    file = tmp_path / "shown.toml"
    file.write_text(done.stdout)
    assert load(file).hash() == load("atlas-lab", ["network.switch.tor.model=qfx5120-48y"]).hash()
    assert 'rto_min = "200 ms"' in done.stdout
    assert done.stderr == ""
    done = invoke("show", "atlas-lab", "--set", "network.shape=one-switch")
    assert done.stderr.startswith("daqloom: left out, because they mean nothing with these changes")
    assert "network.switch.tor.model; give" in done.stderr
    assert "network.switch.tor.model" not in done.stdout


def test_analyse_prints_one_json_object_or_a_table_with_the_papers_figures():
    done = invoke("analyse", "atlas-lab", "--json")
    assert done.exit_code == 0
    assert done.stderr == ""
    record = json.loads(done.stdout)
    assert (record["scenario"], record["method"]) == ("atlas-lab", "analyse")
    assert record["scenario_hash"] == load("atlas-lab").hash()
    record = json.loads(
        invoke("analyse", "atlas-lab", "--set", "transport.overhead=false", "--json").stdout
    )
    assert round(record["metrics"]["buffer_peak_bytes"]["tor"] / 1e6, 1) == 47.5
    assert round(record["analysis"]["published"]["value_bytes"] / 1e6, 2) == 47.03
    done = invoke("analyse", "atlas-lab", "--set", "transport.overhead=false")
    assert "buffer_peak_bytes.tor" in done.stdout
    assert "47.5 MB" in done.stdout


def test_analyse_takes_fabrics_and_systems_without_closed_form(tmp_path):
    record = json.loads(invoke("analyse", "lhcb-10-percent", "--json").stdout)
    assert (record["method"], record["analysis"]["schedule"]["phases"]) == ("analyse", 40)
    assert "barrier_s.waiting" in invoke("analyse", "lhcb-10-percent").stdout
    refused = invoke("analyse", "lhcb-10-percent", "--figure", str(tmp_path / "a.png"))
    assert refused.exit_code == 2
    assert "closed forms of lhcb-10-percent have no figure" in refused.stderr
    printed = invoke("analyse", "pull-infiniband").stdout
    assert "has no closed form" in " ".join(printed.split())
    assert "metric" not in printed


@pytest.mark.process
def test_analyse_imports_nothing_heavy():
    heavy = {"scipy", "xarray", "pandas", "networkx", "matplotlib", "plotly", "distributed", "grpc"}
    heavy |= {"jinja2", "daqloom._engine"}
    analyse = "app(['analyse', 'atlas-lab'], standalone_mode=False)"
    assert not heavy & imported(f"from daqloom.cli.main import app\n{analyse}")


@pytest.mark.parametrize("command", ["scenarios", "show", "analyse", "simulate", "demo"])
def test_help_explains_every_command(command):
    done = invoke(command, "--help")
    assert done.exit_code == 0
    assert command in done.stdout
    assert len(done.stdout.splitlines()) > 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["analyse", "atlas-lap"], 'did you mean "atlas-lab"'),
        (["analyse", "missing.toml"], "missing.toml cannot be read"),
        (["analyse", "/"], "is a folder"),
        (["simulate", "/dev/null"], "not a regular file"),
        (["analyse", sys.executable + "/x.toml"], "cannot be read"),
        (["analyse", "atlas-lab", "--set", "event.sise=2 MB"], 'did you mean "event.size"'),
        (["analyse", "atlas-lab", "--set", "event.size"], "expected dotted.path=value"),
        (["analyse", "atlas-lab", "--set", "event.size=5"], "has no unit"),
        (["analyse", "atlas-lab", "--set", "event.size=-5 MB"], "is negative"),
        (["analyse", "atlas-lab", "--set", "event.size=5 kHz"], "is not in B"),
        (["show", "small-rack", "--set", "builders.units=0"], "pull requires a number of units"),
        (["simulate", "small-rack", "--set", "event.rate=0 Hz"], "pull requires a rate"),
        (["simulate", "small-rack", "--seed", "-1"], "--seed: run.seed = -1 is too small"),
        (
            ["simulate", "lhcb-10-percent", "--pcap", "a=b"],
            "--pcap records frames of pull building over TCP",
        ),
        (["simulate", "small-rack", "--pcap", "access.0"], "expected LINK=FILE"),
        (
            ["simulate", "small-rack", "--pcap", f"{LINK}=b", "--pcap", f"{LINK}=c"],
            "already recorded",
        ),
        (
            ["simulate", "small-rack", "--pcap", f"{LINK}=b", "--pcap", "uplink.0.up=b"],
            "already the file of another link",
        ),
        (
            ["simulate", "small-rack", "--pcap", "access.4.down=b"],
            "source.0.down to access.3.down, access.3.up",
        ),
        (["simulate", "small-rack", "--pcap", "core=b"], 'there is no link "core"'),
        (["simulate", "small-rack", "--trace", "/"], "is a folder"),
        (["simulate", "small-rack", "--trace", "x" * 300], "file name too long"),
        (["simulate", "small-rack", "--pcap", f"{LINK}=/dev/null/b"], "cannot be written"),
        (["simulate", "small-rack", "--figure", "figure.docx"], "must end in .png"),
        (["analyse", "small-rack", "--figure", "/dev/null/figure.png"], "cannot be written"),
        (["demo", "--output", "/dev/null/demo"], "cannot be written"),
        (["simulate", "small-rack", "--trace", "/proc/trace.json"], "cannot be written"),
    ],
)
def test_a_users_mistake_is_answered_in_one_sentence(arguments, reason):
    assert reason in refused(*arguments)


def test_all_mistakes_of_a_scenario_are_listed_one_a_line(tmp_path):
    file = tmp_path / "it.toml"
    file.write_text('[building]\nprotocol = "pul"\n[network.switch.tor]\nreserved = "2 MB"\n')
    done = invoke("show", str(file))
    assert done.exit_code == BAD_INPUT
    first, second = done.stderr.splitlines()
    assert first.endswith('; did you mean "pull"?')
    assert second == (
        f'{file}: unknown key "network.switch.tor.reserved"; '
        'did you mean "network.switch.tor.dedicated"?'
    )


@pytest.mark.parametrize(
    "arguments", [["analyse"], ["frobnicate"], ["analyse", "small-rack", "--no-such-option"]]
)
def test_a_wrong_command_line_is_refused_with_a_pointer_to_help(arguments):
    done = invoke(*arguments)
    assert done.exit_code == BAD_INPUT
    assert "--help" in done.stderr or "-h" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("content", [b"", b"\x7fELF\0\0", b"[event\n", b'[event]\nsize = "5 M'])
def test_a_file_that_is_no_scenario_is_refused_by_its_name(tmp_path, content):
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    for command in ("show", "analyse", "simulate"):
        assert str(file) in refused(command, file)


def test_a_folder_that_may_not_be_written_is_refused_before_the_run(tmp_path):
    tmp_path.chmod(0o500)
    with ordinary_user(tmp_path):
        message = refused("simulate", "small-rack", "--trace", tmp_path / "t.json")
    assert "cannot be written" in message


def test_interrupts_and_a_lack_of_memory_are_one_sentence_and_errors_tracebacks(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(System, "simulate", interrupted)
    done = invoke("simulate", "small-rack")
    assert done.exit_code == INTERRUPTED
    assert done.stderr == "daqloom: interrupted; nothing was saved\n"

    def exhausted(*_, **__):
        raise MemoryError

    monkeypatch.setattr(System, "simulate", exhausted)
    done = invoke("simulate", "small-rack")
    assert done.exit_code == FAILED
    assert "out of memory" in done.stderr

    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(System, "analyse", broken)
    assert isinstance(invoke("analyse", "small-rack").exception, ZeroDivisionError)


AT_ONCE = """
from daqloom.__main__ import main
from daqloom.cli import console

console.SILENT_S = 0.0
main()
"""
"""`daqloom`, but progress is shown from the first moment on."""


@pytest.mark.process
def test_a_simulation_that_is_interrupted_ends_within_the_run():
    pytest.importorskip("daqloom._engine")
    command = [sys.executable, "-c", AT_ONCE, "simulate", "atlas-lab", "--json"]
    with subprocess.Popen(
        [*command, "--set", "run.duration=1000 s", "--set", "run.warmup=0 s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr.readline().startswith("simulating atlas-lab: 0%")
        process.send_signal(signal.SIGINT)
        output, log = process.communicate()
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in log
    assert json.loads(output)["engine"]["virtual_s"] < 1000


def test_the_seed_on_the_command_line_replaces_the_scenarios(monkeypatch):
    def simulated(system, **_):
        scenario = system.scenario
        return Result(
            scenario=scenario.name,
            scenario_hash=scenario.hash(),
            method="simulate",
            seed=scenario.run.seed,
            metrics={},
        )

    monkeypatch.setattr(System, "simulate", simulated)
    assert json.loads(invoke("simulate", "small-rack", "--seed", "7", "--json").stdout)["seed"] == 7


@pytest.mark.parametrize(
    "arguments", [["show", "small-rack"], ["analyse", "small-rack", "--json"], ["--help"]]
)
@pytest.mark.process
def test_a_full_disk_is_one_sentence(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "daqloom", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FAILED
    assert done.stderr == "daqloom: cannot write the output: no space left on device\n"


@pytest.mark.process
def test_a_reader_that_goes_away_causes_no_error_message():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        command = [sys.executable, "-m", "daqloom", "show", "small-rack"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""


def test_the_parser_is_made_for_the_given_command_only():
    def commands() -> typer.Typer:
        made, inner = group(), group()
        for name in ("first", "second"):
            made.command(name)(lambda: None)
            inner.command(name)(lambda: None)
        made.add_typer(inner, name="inner")
        return made

    def left(arguments: list[str]) -> list[str]:
        made = commands()
        narrow(made, arguments)
        inner = [each.typer_instance for each in made.registered_groups]
        return [
            str(each.name)
            for one in [made, *inner]
            if one is not None
            for each in one.registered_commands
        ]

    everything = ["first", "second", "first", "second"]
    assert left(["second", "first"]) == ["second"]
    assert left(["inner", "first"]) == ["first"]
    assert left(["inner", "--help"]) == ["first", "second"]
    for arguments in ([], ["--help"], ["secnd"]):
        assert left(arguments) == everything


@pytest.mark.process
def test_a_closed_form_starts_without_the_other_commands():
    code = (
        "import sys\n"
        "from daqloom.__main__ import main\n"
        "sys.argv = ['daqloom', 'analyse', 'small-rack', '--json']\n"
        "main()\n"
    )
    command = [sys.executable, "-X", "importtime", "-c", code]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "daqloom.cli.describe" in imported
    assert "daqloom.cli.study" not in imported
    assert "daqloom.cli.main" not in imported


EACH_ALONE = """
import os, sys
from daqloom.cli import describe  # which every process begins with
assert "daqloom.cli.main" not in sys.modules
for name in sys.argv[1:]:
    if not (child := os.fork()):
        from daqloom.__main__ import main
        sys.argv = ["daqloom", name, "--help"]
        main()
    assert os.waitpid(child, 0)[1] == 0, name
"""
"""Runs the help of commands, each in a process that has none of the others."""


@pytest.mark.process
def test_every_command_of_the_help_answers_alone():
    from typer.main import get_group

    names = list(get_group(app).commands)
    done = subprocess.run([sys.executable, "-c", EACH_ALONE, *names], capture_output=True)
    assert done.returncode == 0, done.stderr
    usages = re.findall(r"(?m)^Usage: daqloom (\S+)", done.stdout.decode())
    assert usages == names

"""Measurements and steered runs by commands and functions, with nodes without an engine."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom._engine import Counters, Tally
from daqloom.cli.options import with_options
from daqloom.control.counters.metrics import ROWS, Row, difference, metrics
from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request, Status, steer
from daqloom.deployment.scenarios import override, settle
from daqloom.machine.launch import Local
from daqloom.measure import plan
from daqloom.measure.plan import plan_of
from daqloom.measure.run import Progress, measure
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import declaration
from daqloom.results.result import StoppedError
from daqloom.scenario import ScenarioError
from daqloom.scenario.file.show import to_toml
from daqloom.scenario.schema.measure import Measure, cores
from daqloom.scenario.schema.models import Scenario
from daqloom.system import System
from support.children import children
from support.measure.controlled_runs import FAKE, HUNG_S
from support.measure.fake_node import FOLDER
from support.measure.small_runs import DAQLOOM, SMALL, daqloom, small

UNFOLDED = {"builders.folded": False, "readout.units": 2, "builders.units": 1}


class NoLauncher(Local):
    def tasks(self, *_):
        raise AssertionError("a unit was started")


@pytest.mark.process
def test_events_with_wrong_bytes_are_a_warning(tmp_path, monkeypatch) -> None:
    """One MEP of a hundred of unit 1 has other bytes than the source sent."""
    (tmp_path / "fault-1").write_text("wrong")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    result = measure(small(fault_timeout=f"{HUNG_S} s"), launcher=Local(FAKE))
    wrong = result.metric("events_wrong")
    assert wrong > 0
    assert result.warnings[0].startswith(f"{wrong:,.0f} events had wrong bytes: ")


@pytest.mark.process
def test_a_measurement_has_a_result_like_all_methods() -> None:
    log, shares = [], []
    result = measure(
        small(fault_timeout=f"{HUNG_S} s"),
        launcher=Local(FAKE),
        on_event=lambda event: log.append(event.text),
        progress=lambda how: shares.append(how.share),
    )
    assert result.method == "measure"
    assert result.scenario == "small"
    # Each of three fake nodes builds a MEP of ten events a millisecond.
    rate = result.metric("event_rate_hz")
    assert 0 < rate < 31_000
    assert result.metric("throughput_bps") == pytest.approx(rate / 10 * 1000 * 8)
    assert result.metric("events_built") % 10 == 0
    assert result.metric("units_lost") == 0
    assert result.metric("regroupings") == 0
    assert [text for text in result.warnings if not text.startswith("without effect")] == []
    assert shares == sorted(shares)
    assert result.series["run_events"]["text"] == log
    assert "running: from MEP 0" in log
    assert json.loads(result.to_json())["metrics"]["events_built"] > 0


@pytest.mark.process
def test_a_measurement_can_be_made_where_a_loop_runs_already() -> None:
    async def notebook():
        return measure(small(), launcher=Local(FAKE))

    assert asyncio.run(notebook()).metric("events_built") > 0


@pytest.mark.process
def test_a_measurement_ends_after_so_many_events() -> None:
    result = measure(small(duration="100 s", events=1000), launcher=Local(FAKE))
    assert result.metric("events_built") >= 1000
    assert result.engine["wall_s"] < 90


@pytest.mark.process
def test_a_failed_measurement_has_a_reason_and_keeps_the_output_of_units(tmp_path) -> None:
    failing = (sys.executable, "-c", "print('no such license'); raise SystemExit(3)")
    with pytest.raises(MeasureError, match=r"could not start.*exit code 3.*no such license"):
        measure(small(), launcher=Local(failing), log_dir=tmp_path)
    # The first that failed has output; the others may have been ended before.
    assert "no such license" in "".join(log.read_text() for log in tmp_path.glob("unit-*.log"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"output_buffer": "1 kB"}, r"^measure: output_buffer of 1000 bytes; .*: give several"),
        ({"stream_buffer": "1 kB"}, r"^measure: stream_buffer of 1000 bytes; .*: give at least"),
        ({"congestion": "cubic"}, r"TCP connections only, and measure.transport = .shm. has none"),
    ],
)
def test_a_plan_that_no_unit_can_run_is_refused_before_any_start(change, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        measure(small(**change), launcher=NoLauncher())


def test_flows_alone_are_refused() -> None:
    building = {"building": {"protocol": "none"}, "network": {"technology": "infiniband"}}
    flows = {"a": {"source": 0, "destination": 1}}
    scenario = Scenario.model_validate({"name": "x", "flows": flows, **building})
    with pytest.raises(ScenarioError, match="does not describe an event builder"):
        measure(scenario)


def test_unfolded_nodes_need_a_readout_and_a_builder_unit() -> None:
    folded, unfolded = plan_of(small()).rules, plan_of(override(small(), UNFOLDED)).rules
    assert folded.units == unfolded.units == 3
    assert folded.is_viable({2})
    assert not unfolded.is_viable({0, 2})
    assert unfolded.is_viable({1, 2})
    assert not plan_of(small(minimum=2)).rules.is_viable({2})


def test_options_stand_in_for_keys() -> None:
    keys = {"duration": "3 s", "events": 5, "transport": "libfabric:tcp"}
    options = {f"measure.{key}": value for key, value in keys.items()}
    measure = with_options(System(small()), options).scenario.measure
    assert (measure.duration, measure.events) == (3.0, 5)
    with pytest.raises(ScenarioError, match=r"^--transport: .*is not a transport"):
        with_options(System(small()), {"measure.transport": "telepathy", "run.seed": None})


# ---- from counters to metrics -------------------------------------------------------------------


def test_metrics_are_differences_of_counters_over_each_units_own_time() -> None:
    begin = {
        0: Counters({"meps_delivered": 100, "meps_built": 90, "elapsed_s": 1.0}),
        1: Counters({"meps_delivered": 10, "elapsed_s": 7.0}),
    }
    barriers = {"in_barrier_s": 0.5, "barriers": 4}
    end = {
        0: Counters({"meps_delivered": 300, "meps_built": 280, "elapsed_s": 3.0, **barriers}),
        1: Counters({"meps_delivered": 30, "elapsed_s": 9.0, "in_barrier_s": 1.5, "barriers": 4}),
    }
    found = metrics(difference(begin, end), packing=10)
    assert found["events_built"] == 10 * (280 - 90), "the others are incomplete"
    assert found["event_rate_hz"] == 10 * (200 / 2 + 20 / 2)
    assert found["barrier_share"] == pytest.approx((0.25 + 0.75) / 2)
    assert "throughput_bps" not in found, "no unit counts that"


def test_an_absent_unit_adds_only_its_own_counts() -> None:
    counted = {
        0: Counters({"phases": 100, "elapsed_s": 10.0}),
        1: Counters({"phases": 10, "elapsed_s": 1.0}),
    }
    row = Row("event_rate_hz", lambda c: c.phases, "rate")
    assert metrics(counted, 1, [row])["event_rate_hz"] == pytest.approx(10 + 10 / 9)


def test_only_bytes_of_fragments_count_as_throughput() -> None:
    counted = {
        # Readout units look into packets: 900 of 1000 bytes are fragments.
        0: Counters({"mfp_bytes_taken": 600, "fragment_bytes_taken": 500, "elapsed_s": 2.0}),
        1: Counters({"mfp_bytes_taken": 400, "fragment_bytes_taken": 400, "elapsed_s": 2.0}),
        # Builder units write them into events, with tables and padding.
        2: Counters({"mfp_bytes_built": 800, "mep_bytes_built": 960, "elapsed_s": 2.0}),
    }
    found = metrics(counted, packing=1)
    assert found["throughput_bps"] == pytest.approx(0.9 * 800 / 2 * 8)
    assert found["overhead_share"] == pytest.approx(1 - 0.9 * 800 / 960)


def test_every_metric_of_the_table_is_declared_as_measured() -> None:
    for row in ROWS:
        assert declaration(row.metric).given_by("measure"), row.metric


@given(st.lists(st.lists(st.integers(0, 1000), min_size=1), min_size=1))
def test_a_tally_goes_on_when_counters_begin_anew(lives) -> None:
    tally, expected, last, elapsed_s = Tally(), 0, 0, 1e6
    for steps in lives:
        count = 0
        for number, step in enumerate(steps):
            count += step
            reading = {"phases": count}
            # A new process is seen by a count below the last, or by its shorter life.
            if number == 0 and count >= last:
                elapsed_s -= 1
                reading["elapsed_s"] = elapsed_s
            tally.read(Counters(reading))
            last = count
            expected += step
    assert tally.totals.phases == expected


# ---- [measure] of a scenario ---------------------------------------------------------------------


def test_explicit_defaults_do_not_change_a_scenario() -> None:
    plain = settle(Scenario.model_validate({key: SMALL[key] for key in SMALL if key != "measure"}))
    usual = override(plain, {"measure.heartbeat": "200 ms", "measure.port": 4711})
    assert usual.hash() == plain.hash()
    assert override(plain, {"measure.waiting": "blocking"}).hash() != plain.hash()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("fault_timeout", "100 ms", r"is less than 3 × heartbeat \(50 ms\) = 150 ms; a"),
        ("transport", "udp", "is not a transport"),
        ("transport", "libfabric:", "is not a transport"),
        ("launch", "ssh", "requires hosts"),
        ("hosts", ["-oProxyCommand=x"], "may hold only letters"),
        ("bind", "0.0.0.0", "requires certificates"),
        ("bind", "localhost", "is not an IP address"),
        ("cores", "3-1", "is not a list of cores"),
        ("source", "replay", "requires source_files"),
        ("sink", "file", "requires sink_files"),
        ("warmup", "1 s", "leaves no time to measure of duration"),
        ("port", 70_000, "at most 65535"),
    ],
)
def test_an_impossible_measure_table_is_refused(key, value, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small(**{key: value})


def test_the_least_fault_timeout_is_three_heartbeats() -> None:
    # 3 × 0.05 is more than 0.15 in binary.
    assert small(fault_timeout="150 ms").measure.fault_timeout == 0.15


def test_cores_are_numbers_and_ranges() -> None:
    assert cores("0-3,8") == [0, 1, 2, 3, 8]
    assert cores("2,2") == cores("1-x") == cores("") == cores("9999") == []
    assert Measure().cores == ""


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture
def scenario_file(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(to_toml(small(launch="by-hand")))
    return file


def reading_until(stream, pattern):
    """Lines of a program until one has `pattern`; the match."""
    for line in stream:
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"the program ended without {pattern}")


@contextmanager
def kept_up(scenario_file):
    """The program that keeps a run up, for `HUNG_S` at most."""
    pipe: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [*DAQLOOM, "control", str(scenario_file)]
    with subprocess.Popen(command, text=True, **pipe) as process:
        killer = threading.Timer(HUNG_S, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            process.kill()


@pytest.mark.process
def test_a_run_is_kept_up_and_steered_from_two_terminals(tmp_path, scenario_file, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    units = []
    with kept_up(scenario_file) as ours:
        found = reading_until(ours.stderr, r"--control (\S+) --token-file (\S+)")
        address, token = found.groups()
        assert os.stat(token).st_mode & 0o777 == 0o600
        environment = os.environ | {"DAQLOOM_TOKEN": Path(token).read_text().strip()}
        for _ in range(3):  # without a number: any that is free
            units.append(subprocess.Popen([*FAKE, "--control", address], env=environment))
        ours.stdin.write("launch missiles\nstart\n")
        ours.stdin.flush()
        reading_until(ours.stdout, '"launch missiles" is not a command; commands are configure')
        reading_until(ours.stdout, "running: from MEP 0")
        status = json.loads(daqloom("control", "status", "--json").stdout)
        assert status["phase"] == "running"
        assert [unit["member"] for unit in status["units"]] == [True] * 3
        assert "3 of 3 units" in daqloom("control", "status", "--address", address).stdout
        assert daqloom("control", "reset", "1").returncode == 0
        reading_until(ours.stdout, "unit 1 is lost: reset by the operator")
        reading_until(ours.stdout, "running: from MEP")
        assert daqloom("control", "stop").returncode == 0
        reading_until(ours.stdout, "ready")
        assert daqloom("control", "exit").returncode == 0
        assert ours.wait() == 0
        assert [unit.wait() for unit in units] == [0, 0, 0]
        assert list((tmp_path / "daqloom").iterdir()) == []
        gone = daqloom("control", "status", "--address", address)
        assert (gone.returncode, gone.stdout) == (1, "")
        assert "you have no run on port" in gone.stderr
        assert "you have no run on this machine" in daqloom("control", "status").stderr


@pytest.mark.parametrize("command", ["measure", "compare"])
@pytest.mark.process
def test_units_by_hand_are_for_control_alone(scenario_file, command) -> None:
    done = daqloom(command, str(scenario_file))
    assert done.returncode == 2
    assert done.stdout == ""
    assert 'measure.launch = "by-hand" starts no units' in done.stderr
    assert "`daqloom control SCENARIO --start`" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.process
def test_a_signal_ends_a_kept_run_cleanly(tmp_path, scenario_file, monkeypatch, number):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with kept_up(scenario_file) as ours:
        reading_until(ours.stderr, "listens at")
        ours.send_signal(number)
        assert ours.wait() == 0
        assert ours.stderr.read().count("Traceback") == 0


@pytest.mark.process
def test_commands_refuse_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for arguments, code, sentence in (
        (("measure", "ib-uniform-64"), 2, "does not describe an event builder"),
        (("control", "no-such-scenario"), 2, "there is no scenario"),
        (("control", "status", "--address", "nonsense"), 1, "is not an address"),
        (("control", "status", "--address", "other.site:1"), 1, "which requires certificates"),
        (("unit", "--control", "127.0.0.1:1", "--patience", "1"), 1, "the run's token"),
    ):
        done = daqloom(*arguments, input="")
        assert done.returncode == code, done
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stdout == ""


@pytest.mark.process
def test_certificates_are_made_by_a_command(tmp_path):
    made = daqloom("control", "certificates", str(tmp_path / "c"), "--host", "daq1")
    assert made.returncode == 0
    assert len(made.stdout.splitlines()) == 5
    again = daqloom("control", "certificates", str(tmp_path / "c"))
    assert (again.returncode, "already has a ca.pem" in again.stderr) == (1, True)


@pytest.mark.process
def test_ctrl_c_ends_a_measurement_and_all_its_processes(tmp_path) -> None:
    units, others = set(), set(children())

    def interrupt(event) -> None:
        if event.text.startswith("running"):
            units.update(set(children()) - others)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StoppedError):
        measure(small(duration="100 s"), launcher=Local(FAKE), on_event=interrupt)
    assert len(units) == 3
    assert not any(Path("/proc", str(unit)).exists() for unit in units)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_reading_of_another_process_has_a_shorter_life() -> None:
    tally = Tally()
    tally.read(Counters({"elapsed_s": 5.0, "meps_built": 10, "phases": 1}))
    assert tally.begins_anew(Counters({"elapsed_s": 4.0}))
    assert not tally.begins_anew(Counters({"elapsed_s": 5.0}))
    tally.read(Counters({"elapsed_s": 4.0, "meps_built": 12, "phases": 7}))
    # Nothing of the 12 and 7 has been counted before, though neither is less than it was.
    assert tally.totals.by_name == {"elapsed_s": 9.0, "meps_built": 22, "phases": 8}


@pytest.mark.parametrize("kept", [100, 10**6])
@pytest.mark.process
def test_a_timeline_without_the_beginning_has_a_warning(tmp_path, monkeypatch, kept) -> None:
    monkeypatch.setattr(plan, "TRACE_STAGES", kept)  # of 4500 and more
    result = measure(small(), launcher=Local(FAKE), trace=tmp_path / "trace.json")
    warnings = [each for each in result.warnings if each.startswith("the timeline shows ")]
    assert len(warnings) == (kept == 100)
    assert all("the last 100 stages" in warning for warning in warnings)


@pytest.mark.process
def test_a_measurement_under_way_is_found_by_an_operator(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    answers: list[Future[Status]] = []

    def ask(how: Progress) -> None:
        if how.phase is Phase.RUNNING and not answers:
            answers.append(operator.submit(steer, Request(command="status"), None))
        if answers and answers[0].done():
            signal.raise_signal(signal.SIGINT)

    with ThreadPoolExecutor(1) as operator, pytest.raises(StoppedError):
        measure(small(duration="100 s"), launcher=Local(FAKE), progress=ask)
    status = answers[0].result()
    assert (status.scenario, status.phase, len(status.units)) == ("small", Phase.RUNNING, 3)
    assert list((tmp_path / "daqloom").iterdir()) == []  # and not afterwards


@pytest.mark.process
def test_a_measurement_needs_no_folder_to_be_found_in(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    assert measure(small(), launcher=Local(FAKE)).metrics["events_built"] > 0

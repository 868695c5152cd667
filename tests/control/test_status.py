"""Requests of an operator that wait for the state of a run."""

import os

import pytest
from rich.console import Console, ConsoleDimensions

from daqloom.cli.console.run import headline, live_table, overview, unit_table
from daqloom.control import status as status_module
from daqloom.control.persistence.store import Store
from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.status import Request, Status, UnitStatus, steer, steer_until
from daqloom.machine.foreign import began_of
from daqloom.machine.processes import ProcessRecord
from daqloom.results.errors import MeasureError
from support.command import invoke, output
from support.measure.virtual_run import World


def run_in(phase: Phase, goal: Goal, failure: str = "") -> Status:
    units = [
        UnitStatus(
            unit=number,
            standing=standing,
            state=State.RUNNING,
            member=standing is Standing.AVAILABLE,
            host="r5n0020.site.example",
            pid=2_000_000 + number,
            reason="silent for 1.0 s" if standing is Standing.LOST else "",
        )
        for number, standing in enumerate(Standing)
    ]
    return Status(
        run="ab12cd34",
        scenario="laptop",
        time_s=1.5,
        phase=phase,
        goal=goal,
        epoch=3,
        first_mep=0,
        failure=failure,
        units=tuple(units),
        events=((1.0, "unit 2 is lost: silent for 1.0 s"),),
        counts={},
    )


@pytest.fixture
def answers(monkeypatch):
    """Answers of the run control in turn, the last one repeatedly."""

    def give(*statuses: Status) -> list[str]:
        requests: list[str] = []

        def steer(request, address, certificates):
            requests.append(request.command)
            return statuses[min(len(requests), len(statuses)) - 1]

        monkeypatch.setattr(status_module, "steer", steer)
        monkeypatch.setattr(status_module, "POLL_S", 0.0)
        return requests

    return give


STEPS = {
    "configure": (Goal.READY, [Phase.WAITING, Phase.CONNECTING, Phase.READY]),
    "start": (Goal.RUNNING, [Phase.STARTING, Phase.RUNNING]),
    "stop": (Goal.READY, [Phase.RUNNING, Phase.HALTING, Phase.READY]),
}


@pytest.mark.parametrize("command", STEPS)
def test_it_returns_when_the_state_is_reached(answers, command):
    goal, phases = STEPS[command]
    requests = answers(*(run_in(phase, goal) for phase in phases))
    assert f": {phases[-1]}, " in output("control", command, "--wait")
    assert requests == [command] + ["status"] * (len(phases) - 1)


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (run_in(Phase.ERROR, Goal.RUNNING, "too few units"), "the run is error and will not be"),
        (run_in(Phase.ENDING, Goal.ENDED), "its goal is ended by now"),
        (run_in(Phase.WAITING, Goal.READY), "its goal is ready by now"),
        (run_in(Phase.WAITING, Goal.RUNNING), "waiting and not running after 0 s; raise --timeout"),
    ],
)
def test_a_state_that_is_not_reached_is_a_failure(answers, status, sentence):
    times_out = "after 0 s" in sentence
    answers(*([] if times_out else [run_in(Phase.STARTING, Goal.RUNNING)]), status)
    wait = ["--wait", "--timeout", "0" if times_out else "60"]
    assert sentence in " ".join(output("control", "start", *wait, code=1).split())


def test_a_command_without_a_goal_is_accepted_or_refused_at_once(answers):
    requests = answers(run_in(Phase.RUNNING, Goal.RUNNING))
    assert (
        steer_until(Request(command="exclude", units=(2,)), None, None, 60.0).phase is Phase.RUNNING
    )
    refusal = {"refusal": "there is no unit 9"}
    answers(run_in(Phase.RUNNING, Goal.RUNNING).model_copy(update=refusal))
    with pytest.raises(MeasureError, match="there is no unit 9"):
        steer_until(Request(command="reset", unit=9), None, None, 60.0)
    assert requests == ["exclude"]


def printed(shown, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


@pytest.mark.parametrize("width", [60, 80, 100, 10_000])
def test_tables_break_no_word(width):
    words = {"running", "silent", "rate", "(r5n0020.site.example):"}
    status = run_in(Phase.HALTING, Goal.READY)
    for shown in (unit_table(status, width), live_table(status, ConsoleDimensions(width, 60))):
        lines = printed(shown, width)
        assert words | {str(each) for each in Standing} - {"available"} <= set(lines.split())
        assert all(len(line) <= width for line in lines.splitlines())


def test_a_status_without_a_terminal_breaks_no_word(answers):
    answers(run_in(Phase.HALTING, Goal.READY))
    done = invoke("control", "status")
    assert {"running", "(r5n0020.site.example):", "halting,", "silent"} <= set(done.output.split())


RATES = {
    "event_rate_hz": 123.4e3,
    "wait_source": 1.0,
    "wait_peer": 1.0,
    "wait_barrier": 1.0,
    "wait_consumer": 1.0,
    "source_fill": 1.0,
    "output_fill": 1.0,
    "lost_hz": 123_456.0,
    "disk_free_bytes": 1.234e12,
}


def many(units: int, **of_one: dict[str, float]) -> Status:
    """A run of many units; `of_one`: further rates of the unit u7, and so on."""
    rows = [
        UnitStatus(
            unit=number,
            standing=Standing.AVAILABLE,
            state=State.RUNNING,
            member=True,
            host=f"node{number}",
            rates=RATES
            | {"lost_hz": 0.0, "wait_consumer": 0.0, "wait_source": 0.0}
            | of_one.get(f"u{number}", {}),
        )
        for number in range(units)
    ]
    run = run_in(Phase.RUNNING, Goal.RUNNING)
    fields = {"units": tuple(rows), "began_s": 1_796_066_790.0, "time_s": 3725.0}
    lost = {"discarded": 1200, "not_written": 5}
    latency = {"latency_p50_s": 0.004, "latency_p99_s": 0.03, "latency_max_s": 0.04}
    rates = RATES | latency | {"throughput_bps": 31.9e12}
    return run.model_copy(update=fields | {"lost": lost, "rates": rates, "number": 17})


def first_units(lines: str) -> list[str]:
    return [line.split()[0] for line in lines.splitlines() if line.strip()[:1].isdigit()]


def test_forty_units_fit_eighty_columns_with_every_rate():
    lines = printed(unit_table(many(40, u7=RATES), 80), 80).splitlines()
    assert len(lines) == 42
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split()[-2:] == ["lost/s", "disk"]
    assert lines[2].split() == [
        *("7", "running", "123", "kHz", "100%", "100%", "100%", "100%", "100%", "100%"),
        *("120", "k", "1.23", "TB"),
    ]


def test_units_with_trouble_are_first():
    status = many(
        5, u3={"lost_hz": 5.0}, u2={"wait_consumer": 0.8}, u1={"wait_barrier": 0.1, "x": 1.0}
    )
    lost = status.units[4].model_copy(
        update={"member": False, "standing": Standing.LOST, "reason": "silent for 1.0 s"}
    )
    status = status.model_copy(update={"units": (*status.units[:4], lost)})
    lines = printed(unit_table(status, 80), 80)
    assert first_units(lines) == ["4", "3", "2", "1", "0"]
    assert lines.splitlines()[-1].rstrip() == "unit 4 (node4): silent for 1.0 s"


def test_many_units_are_summed_up_by_state_and_the_worst_ten():
    lines = printed(unit_table(many(324, u200={"lost_hz": 5.0}), 80), 80)
    assert lines.splitlines()[0].rstrip() == "324 running; the worst 10:"
    assert first_units(lines)[:2] == ["324", "200"]
    assert lines.splitlines()[-1].rstrip() == "and 314 more units"
    assert len(lines.splitlines()) == 14


def test_the_overview_has_times_rates_latency_losses_and_disk():
    times, rates, losses, disk = overview(many(4))
    assert times.endswith(":30")
    assert "1:02:05 since" in times
    assert rates == "123.4 kHz, 31.9 Tb/s, latency 4 ms median, 30 ms 99 %, 40 ms most"
    assert losses == "lost until now: 1,200 discarded, 5 not written"
    assert disk == "least disk space left: 1.234 TB"
    assert headline(many(4)).startswith("laptop, run 17 ab12cd34: running, 4 of 4 units")
    assert overview(run_in(Phase.WAITING, Goal.READY)) == []


@pytest.mark.parametrize("height", [10, 24, 60])
def test_a_live_table_fits_the_height_of_the_terminal(height):
    size = ConsoleDimensions(80, height)
    lines = printed(live_table(many(324), size, "stat", "reply"), 80).splitlines()
    assert len(lines) <= max(height, 16)


def test_watch_is_an_option_of_status_too(answers):
    answers(run_in(Phase.RUNNING, Goal.RUNNING), run_in(Phase.ENDED, Goal.ENDED))
    assert "ended" in output("control", "status", "--watch")
    assert "without it, --json prints" in output("control", "status", "--watch", "--json", code=2)


def test_a_run_without_its_run_control_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path / "runs"))
    run = tmp_path / "runs" / "20261130-190500-laptop"
    run.mkdir(parents=True)
    world = World(2, control_grace_s=60.0)
    mine = ProcessRecord((0, 1), os.getpid(), began_of(os.getpid()))
    Store.new(run, "laptop", "abcd1234", {}).save(world.control, 5.0, 10**18, [mine])
    with pytest.raises(MeasureError, match=f"{run.name} has no run control now; .*--folder {run}"):
        steer(Request(command="status"), None)
    gone = ProcessRecord((0, 1), os.getpid(), began_of(os.getpid()) - 1)
    Store.new(run, "laptop", "abcd1234", {}).save(world.control, 5.0, 10**18, [gone])
    with pytest.raises(MeasureError, match="you have no run on this machine"):
        steer(Request(command="status"), None)

"""Requests of an operator that wait for the state of a run."""

import pytest
from rich.console import Console

from daqloom.cli.console.run import live_table, unit_table
from daqloom.control import status as status_module
from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.status import Status, UnitStatus
from support.command import invoke, output


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


def printed(shown, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


@pytest.mark.parametrize("width", [60, 80, 100, 10_000])
def test_tables_break_no_word(width):
    words = {"running", "silent", "r5n0020.site.example", "incomplete", "yes", "discarded"}
    status = run_in(Phase.HALTING, Goal.READY)
    for shown in (unit_table(status, width), live_table(status, width)):
        lines = printed(shown, width)
        assert words | {str(each) for each in Standing} - {"available"} <= set(lines.split())
        assert all(len(line) <= width for line in lines.splitlines())


def test_a_status_without_a_terminal_breaks_no_word(answers):
    answers(run_in(Phase.HALTING, Goal.READY))
    done = invoke("control", "status")
    assert {"running", "r5n0020.site.example", "discarded", "silent"} <= set(done.output.split())
    assert "2000001" in done.output

"""Commands that steer a run from another terminal."""

import pytest

from daqloom.control import status as status_module
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.status import Status
from support.command import invoke, output


def status(**changes):
    known = {
        "run": "ab12cd34",
        "scenario": "laptop",
        "time_s": 1.5,
        "phase": Phase.READY,
        "goal": Goal.READY,
        "epoch": 3,
        "first_mep": 0,
        "failure": "",
        "units": (),
        "events": (),
        "counts": {},
    }
    return Status(**(known | changes))


@pytest.fixture
def requests(monkeypatch):
    """Requests that commands send; the run control answers with a status."""
    found = []

    def steer(request, address, certificates=None):
        found.append(request)
        return status()

    monkeypatch.setattr(status_module, "steer", steer)
    return found


def test_new_values_are_sent_as_they_are_typed(requests):
    output("control", "configure", "--set", "event.rate=20 kHz", "--set", "event.packing=5")
    assert requests[0].settings == ("event.rate=20 kHz", "event.packing=5")


@pytest.mark.parametrize("command", ["include", "exclude"])
def test_units_and_sources_are_chosen_by_number(requests, command):
    output("control", command, "3", "5")
    output("control", command, "7", "--sources")
    assert [each.command for each in requests] == [command, command]
    assert [(each.units, each.sources) for each in requests] == [((3, 5), False), ((7,), True)]


@pytest.mark.parametrize("words", [("exclude",), ("exclude", "-1"), ("include", "8192")])
def test_units_that_cannot_be_are_bad_input(requests, words):
    assert invoke("control", *words).exit_code == 2
    assert requests == []


def test_a_refused_request_is_one_sentence_and_exit_code_1(monkeypatch):
    refused = status(refusal="the run is running and cannot be configured; stop it first")
    monkeypatch.setattr(status_module, "steer", lambda *_: refused)
    for words in (("configure",), ("configure", "--wait")):
        done = invoke("control", *words)
        assert done.exit_code == 1
        assert "the run is running and cannot be configured; stop it first" in done.stderr


def test_a_request_that_waits_for_its_hooks_has_not_reached_its_goal(monkeypatch):
    waits = status(pending="stop", requests=4)
    answers = iter([waits, waits, status(requests=4, number=17)])
    monkeypatch.setattr(status_module, "steer", lambda *_: next(answers))
    monkeypatch.setattr(status_module, "POLL_S", 0.0)
    assert "run 17 ab12cd34: ready" in output("control", "stop", "--wait")
    assert next(answers, None) is None


def test_a_hook_that_blocks_ends_the_wait(monkeypatch):
    waits = status(phase=Phase.READY, pending="start", requests=4)
    blocked = status(requests=4, refusal='hook "disk" blocks start: exit code 1')
    answers = iter([waits, blocked])
    monkeypatch.setattr(status_module, "steer", lambda *_: next(answers))
    monkeypatch.setattr(status_module, "POLL_S", 0.0)
    assert 'hook "disk" blocks start' in output("control", "start", "--wait", code=1)

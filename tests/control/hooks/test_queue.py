"""Hooks of a run in their order, and the numbers that they answer."""

import asyncio

import pytest

from daqloom.control.hooks import queue
from daqloom.control.hooks.document import Hook
from daqloom.control.hooks.process import Outcome
from daqloom.results.errors import MeasureError


class Scripted:
    """Hooks without processes: each has the outcome of its name."""

    def __init__(self, monkeypatch, **outcomes):
        self.outcomes, self.runs, self.log = outcomes, [], []
        self.hooks = queue.Hooks(tuple(self._hooks()), "folder", self.log.append)
        self.gate = asyncio.Event()
        self.gate.set()
        monkeypatch.setattr(queue, "run_hook", self._run)

    def _hooks(self):
        for name in self.outcomes:
            transition, when, on_failure = name.split("_")[:3]
            yield Hook(
                name=name,
                transition=transition,
                when=when,
                on_failure=on_failure,
                command=("true",),
            )

    async def _run(self, hook, values, folder):
        await self.gate.wait()
        self.runs.append((hook.name, dict(values)))
        return self.outcomes[hook.name]


OK = Outcome(0.5)


async def test_hooks_before_a_transition_run_in_the_order_of_the_file(monkeypatch):
    it = Scripted(
        monkeypatch, start_before_block_2=OK, stop_before_block=OK, start_before_block_1=OK
    )
    assert it.hooks.has_before("start")
    assert not it.hooks.has_before("exit")
    assert await it.hooks.before("start", {"run_number": 3}) == {"run_number": 3}
    assert [name for name, _ in it.runs] == ["start_before_block_2", "start_before_block_1"]
    assert it.runs[0][1] == {"hook": "start_before_block_2", "when": "before", "run_number": 3}
    assert it.log == [f'hook "{name}" before start took 500 ms' for name, _ in it.runs]


async def test_a_failure_blocks_and_later_hooks_do_not_run(monkeypatch):
    it = Scripted(
        monkeypatch,
        start_before_pass=Outcome(1.0, failure="exit code 1"),
        start_before_block=Outcome(2.0, failure="no answer within 2 s"),
        start_before_block_2=OK,
    )
    sentence = (
        'hook "start_before_block" blocks start: no answer within 2 s; correct the hook, or set '
        'its on_failure = "pass"'
    )
    with pytest.raises(MeasureError, match=f"^{sentence}$"):
        await it.hooks.before("start", {})
    assert [name for name, _ in it.runs] == ["start_before_pass", "start_before_block"]
    assert it.log[0] == 'hook "start_before_pass" before start failed after 1 s: exit code 1'


async def test_later_hooks_get_the_number_that_an_earlier_one_has_answered(monkeypatch):
    it = Scripted(
        monkeypatch,
        start_before_block_1=Outcome(0.5, '{"run_number": 41}'),
        start_before_block_2=OK,
    )
    assert (await it.hooks.before("start", {"run_number": 3}))["run_number"] == 41
    assert [values["run_number"] for _, values in it.runs] == [3, 41]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ('{"run_number": 5}', 5),
        ('{"run_number": 0}', None),
        ('{"run_number": -1}', None),
        ('{"run_number": true}', None),
        ('{"run_number": 1.5}', None),
        ('{"run_number": 9007199254740992}', None),
        ("5", None),
        ("done", None),
        ("[" * 200_000, None),
    ],
)
def test_only_a_positive_whole_number_is_a_run_number(answer, number):
    assert queue.run_number_in(Outcome(0.1, answer)) == number
    assert queue.run_number_in(Outcome(0.1, answer, failure="exit code 1")) is None


async def test_hooks_after_transitions_run_one_by_one_and_are_awaited(monkeypatch):
    it = Scripted(monkeypatch, start_after_pass=OK, stop_after_pass=OK)
    it.gate.clear()
    it.hooks.after("stop", {"unit": 1})
    it.hooks.after("start", {"unit": 2})
    it.hooks.after("exit", {})
    it.gate.set()
    await it.hooks.end()
    assert [(name, values["unit"]) for name, values in it.runs] == [
        ("stop_after_pass", 1),
        ("start_after_pass", 2),
    ]


async def test_hooks_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(queue, "MOST_WAITING", 3)
    it = Scripted(monkeypatch, lost_after_pass=OK)
    for unit in range(5):
        it.hooks.after("lost", {"unit": unit})
    await it.hooks.end()
    assert [values["unit"] for _, values in it.runs] == [0, 1, 2]
    assert it.log[:2] == ['hook "lost_after_pass" is left out: 3 hooks wait'] * 2


async def test_an_interrupted_run_kills_its_hooks(monkeypatch):
    it = Scripted(monkeypatch, stop_after_pass=OK)
    it.gate.clear()
    it.hooks.after("stop", {})
    await it.hooks.end(at_once=True)
    assert it.runs == []

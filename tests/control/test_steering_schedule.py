"""Requests of an operator for another schedule."""

import pytest

from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request
from support.measure.controlled_runs import controlled

pytestmark = pytest.mark.process


async def test_another_schedule_begins_a_new_epoch_and_other_units_are_refused(tmp_path):
    async with controlled(tmp_path) as control:

        def reschedule(*builders):
            request = Request(command="reschedule", readouts=(0, 1, 2), builders=builders)
            return control.obey(request).refusal

        control.obey(Request(command="start"))
        await control.until(lambda: control.run.phase is Phase.RUNNING)
        first = control.run.epoch
        assert reschedule(0, 1, 2) == ""
        assert control.run.phase is Phase.RUNNING, "the run has this schedule already"
        assert reschedule(2, 0, 1) == ""
        await control.until(lambda: control.run.epoch > first)
        await control.until(lambda: control.run.phase is Phase.RUNNING)
        refused = reschedule(2, 0, 3)
        assert refused.endswith("; give each unit of the run one slot")
        assert control.run.epoch == first + 1


async def test_a_run_without_phases_takes_no_schedule(tmp_path):
    async with controlled(tmp_path, takes_turns=False) as control:
        request = Request(command="reschedule", readouts=(0, 1, 2), builders=(2, 0, 1))
        assert control.obey(request).refusal == (
            "the run has no phases of linear shift, so that it takes no other schedule"
        )

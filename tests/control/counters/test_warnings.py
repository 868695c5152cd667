"""Events that sinks did not process or write: accounts, warnings, and a reason to stop."""

from collections.abc import Sequence

import pytest

from daqloom._engine import Balance, Counters
from daqloom.cli.console.terminal import FAILED, present
from daqloom.control.counters.metrics import accounts
from daqloom.control.counters.warnings import (
    failures,
    lost_events,
    omitted_checks,
    unfinished_files,
)
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import Exit, Heartbeat, Pulse
from daqloom.control.protocol.states import Goal, Phase, State
from daqloom.control.unit import Unit
from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from support.measure.live_nodes import configure
from support.measure.virtual_run import World

PACKING = 10
FULL = {"meps_not_written": 7, "incomplete_meps_not_written": 2, "not_written.ENOSPC": 21}


def test_events_not_written_are_a_fate_of_their_own() -> None:
    built = {"meps_built": 100, "meps_incomplete": 20, "meps_discarded": 5}
    processed = {"meps_processed": 120, "incomplete_meps_processed": 20}
    totals = {
        0: Counters({**built, **processed, **FULL}),
        1: Counters({"meps_built": 50, "meps_processed": 50}),
    }
    found = accounts(totals, Balance(unfinished=5), 100 + 50 + 20 + 5 + 5, PACKING, "file")
    fates = {fate: count for fate, count in found.items() if fate != "begun"}
    # 5 of 7 were built whole, 2 incomplete.
    assert found["built"] == (100 + 50 - 5) * PACKING
    assert found["incomplete"] == (20 - 2) * PACKING
    assert found["not_written"] == 7 * PACKING
    assert found["not_processed"] == 0
    assert sum(fates.values()) == found["begun"] == 180 * PACKING


def test_unprocessed_events_of_a_killed_unit_are_a_fate_of_their_own() -> None:
    lost = {"meps_built": 100, "meps_incomplete": 20}
    lost |= {"meps_processed": 110, "incomplete_meps_processed": 17}
    whole = {"meps_built": 50, "meps_processed": 50}
    totals = {0: Counters(lost), 1: Counters(whole), 2: Counters()}
    found = accounts(totals, Balance(), 170, PACKING, "check")
    fates = {"begun": 170, "built": 100 - 7 + 50, "incomplete": 17, "not_processed": 10}
    expected = {fate: count * PACKING for fate, count in fates.items()}
    assert found == expected | dict.fromkeys(("dropped", "discarded", "unfinished", "skipped"), 0)
    [warning] = lost_events(totals, PACKING, "check")
    assert warning == (
        "100 events were built and then lost: unit 0 ended before the sink had processed them"
    )


def test_replayed_events_without_a_checksum_are_a_warning() -> None:
    totals = {0: Counters({"meps_unchecked": 12}), 1: Counters({"meps_unchecked": 3})}
    [warning] = omitted_checks(totals, PACKING)
    assert warning.startswith("150 replayed events were not checked: ")
    assert list(omitted_checks({0: Counters({"meps_unchecked": 0}), 1: Counters()}, PACKING)) == []


def test_a_custom_consumer_keeps_the_events_of_a_killed_unit() -> None:
    totals = {0: Counters({"meps_built": 100, "meps_processed": 90})}
    found = accounts(totals, Balance(), 100, PACKING, "user")
    assert found["built"] == 100 * PACKING
    assert "not_processed" not in found
    assert list(lost_events(totals, PACKING, "user")) == []


def test_a_fate_that_is_counted_wrongly_is_a_failure() -> None:
    totals = {0: Counters({"meps_built": 10, "meps_processed": 11})}
    metrics = {"events_accounted": accounts(totals, Balance(), 10, PACKING, "check")}
    result = Result(scenario="x", scenario_hash="0", method="measure", metrics=metrics)
    [failure] = failures(result)
    assert failure == "not_processed is -10 events: they were not counted right"


def test_warnings_name_units_and_causes() -> None:
    totals = {0: Counters({"not_written.EIO": 0}), 2: Counters(FULL), 3: Counters(FULL)}
    [warning] = lost_events(totals, PACKING, "file")
    assert "140 events were built, but not written" in warning
    assert warning.endswith("by units 2, 3: No space left on device")
    processed = Counters({"meps_built": 3, "meps_processed": 3})
    assert list(lost_events({0: processed}, PACKING, "file")) == []


@pytest.mark.parametrize("metric", ["events_not_written", "events_wrong", "events_repeated"])
def test_a_result_with_events_that_are_lost_or_wrong_is_a_failure(capsys, metric: str) -> None:
    def result(lost: int) -> Result:
        metrics = {metric: lost}
        return Result(scenario="x", scenario_hash="0", method="measure", metrics=metrics)

    present(result(0), json=True)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        present(result(1200), json=True)
    assert ended.value.code == FAILED
    printed = capsys.readouterr()
    assert Result.from_json(printed.out).metrics == {metric: 1200}
    assert printed.err.startswith("daqloom: 1,200 events ")


def test_unfinished_files_have_a_warning(tmp_path) -> None:
    sink = {"measure.sink": "file", "measure.sink_files": str(tmp_path)}
    scenario = override(load("laptop"), sink)
    assert list(unfinished_files(scenario)) == []
    (tmp_path / "unit-0-source-0-0001.mfp.part").write_bytes(bytes(1_500_000))
    [warning] = unfinished_files(scenario)
    for part in ("1 unfinished file in", "1.5 MB", f"`daqloom data recover {tmp_path}`"):
        assert part in warning


class FinishingNode:
    """Loses a MEP when it ends."""

    lost = 0

    def counters(self) -> Counters:
        return Counters({"meps_not_written": self.lost})

    def suspects(self) -> Sequence[int]:
        return []

    def shut(self) -> None:
        self.lost = 1


def test_losses_at_the_finish_of_files_are_in_the_final_report() -> None:
    unit = Unit(b"token", lambda *_: FinishingNode())
    unit.obey(configure())
    unit.obey(Exit(order=2))
    final, _ = unit.reports()
    assert isinstance(final, Heartbeat)
    assert final.ended == 0
    assert final.engine_counters.meps_not_written == 1


def running(**changes) -> World:
    world = World(2, **changes)
    world.want(Goal.RUNNING)
    assert world.run(10, lambda: world.control.phase is Phase.RUNNING)
    return world


def report_full(world: World, lost: int) -> None:
    control, unit = world.control, world.control.units[1]
    pulse = Pulse(epoch=control.epoch, state=State.RUNNING)
    report = Heartbeat(pulse=pulse, counters={**FULL, "meps_not_written": lost})
    assert control.reported(world.now, 1, unit.session, wire.record(report)) is None
    world.act()


def test_a_unit_that_cannot_write_has_one_log_entry_and_the_run_goes_on() -> None:
    world = running()
    for lost in (1, 2, 3):
        report_full(world, lost)
    [text] = [event.text for event in world.control.events if event.is_trouble]
    assert text == "unit 1 cannot write what it builds: No space left on device"
    assert not world.run(5, lambda: world.control.phase is not Phase.RUNNING)


def test_the_run_stops_if_configured() -> None:
    world = running(stops_when_unwritable=True)
    report_full(world, 0)
    assert not world.run(5, lambda: world.control.phase is not Phase.RUNNING)
    report_full(world, 1)
    assert world.run(5, lambda: world.control.phase is Phase.READY)
    assert world.control.events[-1].text.startswith("ready")
    assert any(event.text.endswith("; the run stops") for event in world.control.events)
    # After a restart by the operator, the same losses do not stop it.
    world.want(Goal.RUNNING)
    assert world.run(5, lambda: world.control.phase is Phase.RUNNING)
    report_full(world, 1)
    assert not world.run(5, lambda: world.control.phase is not Phase.RUNNING)
    report_full(world, 2)
    assert world.run(5, lambda: world.control.phase is Phase.READY)


@pytest.mark.parametrize(("fault", "within_s"), [("hang", 21), ("stop", 5)])
def test_at_the_end_a_unit_has_time_to_finish_its_files_if_it_lives(fault, within_s) -> None:
    world = running(finish_timeout_s=20.0)
    getattr(world, fault)(1)  # hang: it does not answer, but its heartbeats come
    world.want(Goal.ENDED)
    assert world.run(10, lambda: world.control.phase is Phase.ENDING)
    begun_s = world.now
    assert world.run(60, lambda: world.control.phase is Phase.ENDED)
    assert world.processes == [None, None]
    assert world.now - begun_s < within_s
    assert fault == "stop" or world.now - begun_s > 20
